"""Each rule of the optimizer on small nodes: what it makes of them, and that they do the same as before.

`rules/RULE/NAME.vsp` is a node, `NAME.txt` what the rule alone makes of it, as `Program.optimised_listing` shows it.
Run this file as a program to write the texts anew, and read what has changed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.optimizer.plain import plain_engines, raw_program
from tests.support.nodes import compiled, worked_nodes, written_for_tests
from vesper.cli.verify.text import difference_text, failure_text
from vesper.verify.differential.verifier import Verifier
from vesper.verify.programs.campaign import verify_programs

RULES = Path(__file__).parent / "rules"
FIXTURES = sorted(RULES.glob("*/*.vsp"))
SEED = 20261115
NAMES = ["constants", "intervals", "guards", "dead_steps", "jump_tables", "invariants", "common", "selects"]


def _id(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def _listed(path: Path) -> str:
    return raw_program(compiled(path), [path.parent.name]).optimised_listing()


def _disagreements(path: Path, rules: list[str] | None, inputs: int) -> list[str]:
    node = compiled(path)
    report = Verifier(node, plain_engines(rules), SEED, checks_postconditions=False).run(inputs)
    assert report.not_comparable == 0
    return [difference_text(node, each, None) for each in report.differences]


@pytest.mark.parametrize("path", FIXTURES, ids=_id)
def test_a_rule_makes_what_is_written_down(path: Path) -> None:
    assert _listed(path) == path.with_suffix(".txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FIXTURES, ids=_id)
def test_a_rule_changes_something(path: Path) -> None:
    assert _listed(path) != raw_program(compiled(path), optimise=False).optimised_listing()


@pytest.mark.parametrize("path", FIXTURES, ids=_id)
def test_a_node_does_the_same_by_one_rule_and_by_all(path: Path) -> None:
    assert not _disagreements(path, [path.parent.name], 40)
    assert not _disagreements(path, None, 40)


@pytest.mark.parametrize("path", [*worked_nodes(), *written_for_tests()], ids=lambda path: path.stem)
def test_worked_nodes_do_the_same(path: Path) -> None:
    assert not _disagreements(path, None, 6)


def test_random_programs_do_the_same() -> None:
    report = verify_programs(plain_engines(), count=12, seed=SEED + 1, stop_after=3)
    texts = [f"{failure_text(each, None, None)}\n\n{each.text}" for each in report.failures]
    assert not texts, "\n\n" + "\n\n".join(texts)
    assert report.not_comparable == 0


def test_every_rule_has_nodes_and_every_text_a_node() -> None:
    assert sorted({path.parent.name for path in FIXTURES}) == sorted(NAMES)
    assert sorted(RULES.glob("*/*.txt")) == [path.with_suffix(".txt") for path in FIXTURES]


def test_an_unknown_rule_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no rule `folding`; its rules are constants, intervals, guards"):
        raw_program(compiled(FIXTURES[0]), ["folding"])


if __name__ == "__main__":
    for fixture in FIXTURES:
        fixture.with_suffix(".txt").write_text(_listed(fixture), encoding="utf-8")
