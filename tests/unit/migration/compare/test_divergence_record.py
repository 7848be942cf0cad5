"""Stored divergences: fingerprints without values, repeatable exemplars, no sensitive data, bounded size."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.nodes import PAYMENT_DECISION, compiled, compiled_text
from vesper.compiler import Compiled
from vesper.engines.engine import Request
from vesper.engines.outcome import ContractBroken, DeclaredError, EngineFault, Failed, Outcome, Returned
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.divergence import MAX_EXEMPLARS, Divergence
from vesper.migration.compare.divergence_record import (
    MAX_EXEMPLAR,
    PathsByPlace,
    divergence_of,
    fault_words,
    transcript_in,
)
from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.reports import Difference, Disagreement, Fault
from vesper.migration.compare.transcript import Exchange, Transcript
from vesper.values.generated.errors import ErrorCode
from vesper.values.problem import Problem, ProblemKind

NOW = datetime(2026, 11, 15, 12, 34, 56, 789, tzinfo=UTC)
SECRET = "ann@example.com"
ASKED = Request(
    0, "charge", "external_api_call", "keyed", {"method": "POST"}, {"to": SECRET, "n": Decimal("1.50")}, "k"
)
INPUTS = {"amount": Decimal("1.50"), "who": SECRET, "tags": frozenset({"a"}), "at": NOW}
LEFT, RIGHT = Returned({"fee": Decimal("1.50"), "who": SECRET}), Returned({"fee": Decimal("1.51"), "who": SECRET})
WRITTEN = Transcript(INPUTS, NOW, (Exchange(ASKED, {"id": SECRET}),), LEFT)
DIFFERENCE = Difference("outcome", "outputs.lines[3].fee", "returned", "returned")
NODE = """node_id: lines_v1
type: function
intent: Totals of lines
types: {Line: {fields: {total: decimal, note: string}}}
inputs: {lines: array<Line>, word: string}
outputs: {success: {lines: array<Line>}, error: {error_code: "enum[odd]", message: string}}
flow:
  - {operation: raise, when: "word == 'odd'", error: {error_code: odd, message: "{word}"}}
  - {operation: return, success: {lines: lines}}
"""


@cache
def node() -> Compiled:
    return compiled_text(NODE)


def report(difference: Difference = DIFFERENCE, transcript: Transcript = WRITTEN, **more: object) -> Disagreement:
    return replace(Disagreement(difference, None, None, transcript, RIGHT, "run-1"), **more)  # type: ignore[arg-type]


def kept(found: Disagreement | Fault, is_sensitive: bool = False) -> Divergence:
    return divergence_of(found, node(), is_sensitive, 7)


def test_the_record_of_a_divergence() -> None:
    note = PathNote(b"\x01", (), "returned")
    found = kept(report(note=note))
    assert (found.node, found.kind, found.where) == ("lines_v1", "outcome", "outputs.lines[].fee")
    assert (found.path, found.engines, found.count) == (note.name, ("python", "interp"), 1)
    assert (found.first_us, found.last_us, found.status) == (7, 7, "open")
    assert found.extra["semantic_hash"] == node().semantic_hash
    assert Divergence.from_text(found.to_text()) == found
    (exemplar,) = found.exemplars
    assert (exemplar.execution, exemplar.at_us) == ("run-1", 7)
    assert exemplar.leader == f'returned\nfee = 1.50\nwho = "{SECRET}"'
    assert exemplar.follower == f'returned\nfee = 1.51\nwho = "{SECRET}"'
    assert transcript_in(exemplar) == WRITTEN


_HOLDS_ITSELF: list[object] = []
_HOLDS_ITSELF.append(_HOLDS_ITSELF)


@pytest.mark.parametrize(
    "given", [object(), _HOLDS_ITSELF, NOW.replace(tzinfo=None)], ids=["object", "itself", "local"]
)
def test_a_divergence_on_unencodable_inputs_is_kept(given: object) -> None:
    found = kept(report(transcript=Transcript({"amount": given}, NOW, (), LEFT)))
    (exemplar,) = found.exemplars
    assert found.fingerprint == kept(report()).fingerprint
    assert (exemplar.inputs, exemplar.records) == (None, None)
    assert exemplar.leader == f'returned\nfee = 1.50\nwho = "{SECRET}"'


def test_a_divergence_at_a_key_with_a_lone_surrogate_is_kept() -> None:
    found = kept(report(replace(DIFFERENCE, where="outputs.by\ud800")))
    assert Divergence.from_text(found.to_text()) == found


def test_an_execution_without_requests_is_kept_once() -> None:
    (exemplar,) = kept(report(transcript=replace(WRITTEN, exchanges=()))).exemplars
    assert exemplar.records is None
    read = transcript_in(exemplar)
    assert read is not None
    assert (read.inputs, read.now, read.exchanges) == (INPUTS, NOW, ())


@pytest.mark.parametrize(
    "other",
    [
        replace(DIFFERENCE, where="outputs.lines[12].fee"),
        replace(DIFFERENCE, where="outputs.lines[0].fee", is_effect=True),
    ],
)
def test_loop_rounds_share_a_fingerprint(other: Difference) -> None:
    assert kept(report(other)).fingerprint == kept(report()).fingerprint


@pytest.mark.parametrize(
    "other",
    [
        replace(DIFFERENCE, kind="request"),
        replace(DIFFERENCE, where="outputs.lines[].tax"),
        replace(DIFFERENCE, leader="failed overflow at 3"),
        replace(DIFFERENCE, follower="failed overflow at 3"),
    ],
)
def test_another_kind_or_location_is_another_divergence(other: Difference) -> None:
    assert kept(report(other)).fingerprint != kept(report()).fingerprint


def test_requests_in_rounds_share_a_fingerprint_for_either_leader() -> None:
    judge = Comparator(node())
    fingerprints = set()
    for number in range(3):
        asked = replace(ASKED, path=f"lines[{number}]/charge")
        other = replace(asked, path=f"lines[{number}]/refund")
        for leader, follower, engines in ((asked, other, ("python", "interp")), (other, asked, ("interp", "python"))):
            difference = judge.compare_requests(leader, follower)
            assert isinstance(difference, Difference)
            fingerprints.add(divergence_of(report(difference), node(), False, 7, engines).fingerprint)
    assert len(fingerprints) == 1


WORDS = st.text("ABCDEFGHIJ", min_size=12, max_size=20)


@settings(max_examples=40, deadline=None)
@given(WORDS, st.integers(0, 3))
def test_no_value_of_a_sensitive_node_is_kept(word: str, at: int) -> None:
    """The fingerprint of each kind of difference is the same for every value, and no text contains the value."""
    lines = [{"total": Decimal(number), "note": "same"} for number in range(4)]
    others = [{**line, "note": word if number == at else line["note"]} for number, line in enumerate(lines)]
    pairs: list[tuple[Outcome, Outcome]] = [
        (Returned({"lines": lines}), Returned({"lines": others})),  # type: ignore[dict-item]
        (DeclaredError({"error_code": "odd", "message": "x"}), DeclaredError({"error_code": "odd", "message": word})),
        (Returned({"lines": []}), Failed(f"ValueError: {word}", None)),
        (Returned({"lines": []}), DeclaredError({"error_code": word, "message": word})),
        (ContractBroken("invariant", 0, {"word": "x"}), ContractBroken("invariant", 0, {"word": word})),
        (Returned({"lines": []}), Failed(ErrorCode.BAD_INPUT, None, (Problem("word", ProblemKind.MISSING),))),
        (Returned({"lines": []}), EngineFault(f"panicked: {word}")),
        (Returned({"lines": []}), EngineFault(word)),
    ]
    judge = Comparator(node())
    for number, (leader, follower) in enumerate(pairs):
        difference = judge.compare_outcomes(leader, follower)
        assert isinstance(difference, Difference)
        transcript = Transcript({"word": word}, None, (Exchange(ASKED, word),), leader)
        found = kept(Disagreement(difference, None, 5, transcript, follower), is_sensitive=True)
        assert word not in found.to_text()
        assert SECRET not in found.to_text()
        assert found.fingerprint == _known(number, found.fingerprint)
        (exemplar,) = found.exemplars
        assert (exemplar.inputs, exemplar.now, exemplar.records) == (None, None, None)


_FIRST: dict[int, str] = {}


def _known(number: int, fingerprint: str) -> str:
    return _FIRST.setdefault(number, fingerprint)


def test_a_secret_in_a_response_is_redacted() -> None:
    found = divergence_of(report(), node(), False, 7, redact=lambda text: text.replace(SECRET, "secret:mail"))
    assert SECRET not in found.to_text()
    (exemplar,) = found.exemplars
    read = transcript_in(exemplar)
    assert read is not None
    assert read.inputs["who"] == "secret:mail"


def test_an_oversized_exemplar_keeps_its_name_and_size() -> None:
    large = replace(WRITTEN, inputs={"who": "x" * (MAX_EXEMPLAR + 1)})
    (exemplar,) = kept(report(transcript=large, follower=Returned({"who": "y" * 10_000}))).exemplars
    assert (exemplar.execution, exemplar.inputs, exemplar.records) == ("run-1", None, None)
    assert exemplar.left_out > MAX_EXEMPLAR
    assert len(exemplar.follower) == 2000
    just = replace(WRITTEN, inputs={"who": "x" * (MAX_EXEMPLAR // 4)}, exchanges=())
    assert kept(report(transcript=just)).exemplars[0].left_out == 0


def test_a_lone_surrogate_can_be_kept() -> None:
    odd = replace(WRITTEN, inputs={"who": "\ud800"})
    found = kept(report(transcript=odd))
    text = found.to_text()
    assert text.encode()
    read = transcript_in(Divergence.from_text(text).exemplars[0])
    assert read is not None
    assert read.inputs == {"who": "\ud800"}


def test_five_executions_with_different_inputs_are_kept() -> None:
    found = kept(report(execution=None, fingerprint=0))
    for fingerprint in (0, 0, 1, 2, 3, 4, 5, 6):
        found = found.merge(kept(report(execution=None, fingerprint=fingerprint)))
    assert found.count == 9
    assert [each.execution for each in found.exemplars] == [f"input {number:016x}" for number in range(MAX_EXEMPLARS)]


# -- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what, words",
    [
        ("panicked: index 5 of 3", "panicked"),
        ("PanicException: ann@example.com", "PanicException"),
        ("did not come back: 5 s", "did not come back"),
        ("ann@example.com", "fault"),
        ("value 17 is wrong: x", "fault"),
        ("one two three four five: x", "fault"),
        ("ann", "fault"),
        ("", "fault"),
    ],
)
def test_the_kind_of_a_fault_has_no_value_in_it(what: str, words: str) -> None:
    assert fault_words(what) == words


def test_a_fault_is_one_divergence_whatever_the_input() -> None:
    one = kept(Fault("panicked: index 5 of 3", WRITTEN, "run-1"))
    other = kept(Fault("panicked: index 9 of 4", replace(WRITTEN, outcome=Failed("x", 1)), "run-2"))
    without = kept(Fault("panicked: index 1 of 1"))
    by_word = kept(report(Difference("fault", "engine", "returned", "fault"), follower=EngineFault("panicked: 3")))
    assert len({each.fingerprint for each in (one, other, without, by_word)}) == 1
    assert kept(Fault("it hangs: 5 s", WRITTEN)).fingerprint != one.fingerprint
    assert (one.kind, one.where) == ("fault", "engine")
    assert one.exemplars[0].follower == "panicked: index 5 of 3"
    assert without.exemplars[0].inputs is None
    hidden = kept(Fault(f"panicked: {SECRET}", WRITTEN, "run-1"), is_sensitive=True)
    assert SECRET not in hidden.to_text()


def test_the_record_of_a_real_node_can_be_read_back() -> None:
    decision = compiled(PAYMENT_DECISION)
    found = divergence_of(report(), decision, False, 7)
    assert json.loads(found.to_text())["node"] == "payment_decision_v1"


def test_faults_on_different_paths_are_different_divergences() -> None:
    notes = [PathNote(bytes([number]), (), "returned") for number in range(1, 100)]
    prints = [kept(report(note=note)).fingerprint for note in notes]
    assert len(set(prints)) == len(notes)
    assert kept(report(note=notes[0])).fingerprint == prints[0]
    assert len({kept(report(note=note)).place for note in notes}) == 1
    assert kept(report(prefix="one")).fingerprint != kept(report(prefix="other")).fingerprint


def test_the_number_of_paths_at_one_place_is_bounded() -> None:
    paths = PathsByPlace()
    notes = [PathNote(bytes([number]), (), "returned") for number in range(100)]
    prints = {divergence_of(report(note=note), node(), False, 7, paths=paths).fingerprint for note in notes}
    assert len(prints) == 33
    again = divergence_of(report(note=notes[0]), node(), False, 7, paths=paths)
    assert again.fingerprint == kept(report(note=notes[0])).fingerprint


def test_both_requests_are_kept_with_values_unless_sensitive() -> None:
    texts = ('asks for charge (x)\nlabel = "a"', 'asks for charge (x)\nlabel = "b"')
    found = report(Difference("request", "charge: label", "asks", "asks", True, texts), follower=None)
    (exemplar,) = kept(found).exemplars
    assert (exemplar.leader, exemplar.follower) == texts
    (sealed,) = kept(found, is_sensitive=True).exemplars
    assert (sealed.leader, sealed.follower) == ("asks", "asks")
