"""The engines agree on the corpus that planted faults are held against; and what is planted is where the list says."""

from __future__ import annotations

import re
import tomllib
from collections import Counter

import grimp
import pytest

from tests.proofs.mutants import run
from tests.proofs.mutants.corpus import ASKED_HERE, Question, answer, is_same, own_questions, questions
from tests.proofs.mutants.run import EXPLAINED, KILLED_SHARE, NAME, source_hash
from tests.proofs.robustness.proof import LANGUAGE, PROOFS, read_json
from tests.support.nodes import ROOT
from vesper import _direct
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.python_engine import PythonEngine
from vesper.engines.tiering import ALWAYS

CRATES = ROOT / "direct_runtime" / "crates"
LIST = CRATES / "vesper-ir" / "src" / "fault.rs"
_LISTED = re.compile(r'^    \("([a-z0-9_.]+)", "([a-z_]+)"\),$', re.MULTILINE)
_PLANTED = re.compile(r'planted!\(\s*"([a-z0-9_.]+)"')
OWN = own_questions()


@pytest.mark.parametrize("question", OWN, ids=lambda question: question.name)
def test_the_engines_agree(question: Question) -> None:
    expected = answer(question, PythonEngine().load)
    for engine in (DirectEngine(), DirectEngine(ALWAYS)):
        found = answer(question, engine.load)
        assert is_same(expected, found), f"{expected} and {found}"
    assert not isinstance(expected, str) or not expected.startswith(("raised ", "unexpected ")), expected


def test_none_of_its_own_questions_is_left_out() -> None:
    every = [each.key() for each in questions() if each.name.startswith(ASKED_HERE)]
    assert sorted(every) == sorted(each.key() for each in OWN)


def test_answers_that_differ_are_not_the_same() -> None:
    one, other = OWN[0], next(each for each in OWN if each.name.startswith("fuel "))
    right = answer(one, PythonEngine().load)
    assert is_same(right, right)
    assert not is_same(right, answer(other, PythonEngine().load))
    assert not is_same(right, "raised RuntimeError")
    assert not is_same("raised RuntimeError", right)


def listed() -> dict[str, str]:
    return dict(_LISTED.findall(LIST.read_text(encoding="utf-8")))


IN_TWO_FORMS = {
    *("run.rounds_without_items_cost_nothing", "run.decimal_less_or_equal_misses_equal"),
    *("input.default_is_null", "json_text.fields_backwards"),
}
"""What is done in two places, in the whole form and in a quicker one: a fault is planted in both, or the other place
would hide it."""


def test_every_fault_of_the_list_is_planted_once() -> None:
    files = [path for path in CRATES.rglob("*.rs") if path != LIST]
    planted = Counter(name for path in files for name in _PLANTED.findall(path.read_text(encoding="utf-8")))
    assert set(planted) == set(listed())
    assert {name for name, times in planted.items() if times > 1} == IN_TWO_FORMS


def test_there_are_faults_of_every_kind() -> None:
    kinds = Counter(listed().values())
    assert sum(kinds.values()) >= 130
    assert min(kinds.values()) >= 3, kinds


def test_the_build_for_users_has_no_faults() -> None:
    assert not hasattr(_direct, "faults")
    assert not hasattr(_direct, "select_fault")


def test_what_is_explained_exists() -> None:
    explained = tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))
    assert set(explained) == {"equivalent", "survives"}
    assert {*explained["equivalent"], *explained["survives"]} <= set(listed())


def test_the_proof_is_held_to_all_that_a_run_imports() -> None:
    graph = grimp.build_graph("vesper", "tests", cache_dir=None)
    waiting, found = [run.__name__], set[str]()
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += graph.find_modules_directly_imported_by(module)
    packages = {name.split(".")[1] for name in found if name.startswith("vesper.")}
    assert packages <= {*LANGUAGE, *run.AROUND}


def test_the_proof_is_of_these_faults() -> None:
    proof = read_json(PROOFS / f"{NAME}.json")
    if proof is None:
        pytest.skip("there is no proof yet; `make proof-mutants` writes it")
    assert proof["share"] >= KILLED_SHARE
    if proof["source_hash"] != source_hash():
        pytest.skip("the proof is of other sources; `make proof-mutants` makes it anew")
    assert set(proof["results"]) == set(listed()), "run `make proof-mutants` again"
