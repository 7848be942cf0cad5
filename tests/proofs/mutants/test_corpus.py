"""The engines agree on the corpus that planted faults are held against; the proof covers every fault."""

from __future__ import annotations

import tomllib
from collections import Counter

import grimp
import pytest

from tests.proofs.faults.weave import kinds_of, read_places
from tests.proofs.mutants import planted
from tests.proofs.mutants.corpus import ASKED_HERE, Question, answer, is_same, own_questions, questions
from tests.proofs.mutants.planted import EXPLAINED, KILLED_SHARE, NAME, digest_of_names, source_hash
from tests.proofs.robustness.proof import LANGUAGE, PROOFS, read_json
from vesper import _direct
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.python_engine import PythonEngine
from vesper.engines.tiering import ALWAYS

OWN = own_questions()
ASKED = OWN[::7]
"""`make proof-mutants` asks all."""
QUESTIONS_PER_TEST = 100


# One test for many questions: pytest itself takes longer for a test than the engines for a question.
@pytest.mark.parametrize("start", range(0, len(ASKED), QUESTIONS_PER_TEST))
def test_the_engines_agree(start: int) -> None:
    problems = [problem for each in ASKED[start : start + QUESTIONS_PER_TEST] if (problem := difference(each))]
    assert not problems, "\n".join(problems)


def difference(question: Question) -> str | None:
    expected = answer(question, PythonEngine().load)
    for engine in (DirectEngine(), DirectEngine(ALWAYS)):
        found = answer(question, engine.load)
        if not is_same(expected, found):
            return f"{question.name}: {expected} and {found}"
    is_wrong = isinstance(expected, str) and expected.startswith(("raised ", "unexpected "))
    return f"{question.name}: {expected}" if is_wrong else None


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
    return kinds_of(read_places())


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
    waiting, found = [planted.__name__], set[str]()
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += graph.find_modules_directly_imported_by(module)
    packages = {name.split(".")[1] for name in found if name.startswith("vesper.")}
    assert packages <= {*LANGUAGE, *planted.AROUND}


def test_the_proof_is_of_these_faults() -> None:
    proof = read_json(PROOFS / f"{NAME}.json")
    if proof is None:
        pytest.skip("there is no proof yet; `make proof-faults` writes it")
    assert proof["share"] >= KILLED_SHARE
    if proof["source_hash"] != source_hash():
        pytest.skip("the proof is of other sources; `make proof-faults` makes it anew")
    assert proof["faults_digest"] == digest_of_names(listed()), "run `make proof-faults` again"
