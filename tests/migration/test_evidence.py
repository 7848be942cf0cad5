"""What counts as evidence, and that it merges in any order, any number of times."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vesper.migration.decide import evidence as module
from vesper.migration.decide.evidence import MAX_PATHS, Evidence, is_too_unknown
from vesper.migration.decide.fingerprints import FingerprintSet, fingerprint

LIMIT = 8
hashes = st.integers(0, 30)
actions = st.lists(
    st.tuples(st.sampled_from(["agree", "generated", "diverge", "lose", "refresh_path", "refresh"]),
              st.sampled_from("AB"), hashes),
    max_size=25,
)  # fmt: skip


def evidence_of(process: str, done: list[tuple[str, str, int]]) -> Evidence:
    made = Evidence(process, LIMIT)
    for action, path, value in done:
        match action:
            case "agree":
                made.agree(path, value)
            case "generated":
                made.agree_generated(path, value)
            case "diverge":
                made.diverge(path, value)
            case "lose":
                made.lose()
            case "refresh_path":
                made.refresh_path(path, value % 3)
            case _:
                made.refresh(value % 3)
    return made


def content(of: Evidence) -> tuple[object, ...]:
    paths = {
        name: (each.round, list(each.agreed), list(each.diverged), list(each.generated), dict(each.divergences))
        for name, each in of.paths.items()
    }
    return of.round, paths, of.compared, of.unknown, of.diverged


@settings(max_examples=150, deadline=None)
@given(actions, actions, actions)
def test_merging_is_associative_commutative_and_idempotent(
    one: list[tuple[str, str, int]], two: list[tuple[str, str, int]], three: list[tuple[str, str, int]]
) -> None:
    a, b, c = evidence_of("a", one), evidence_of("b", two), evidence_of("c", three)
    assert content(a.merged(b)) == content(b.merged(a))
    assert content(a.merged(b).merged(c)) == content(a.merged(b.merged(c)))
    assert content(a.merged(a)) == content(a)
    assert content(a.merged(b).merged(b).merged(a)) == content(a.merged(b))


@settings(max_examples=50, deadline=None)
@given(actions, actions)
def test_merging_changes_neither_side(one: list[tuple[str, str, int]], two: list[tuple[str, str, int]]) -> None:
    a, b = evidence_of("a", one), evidence_of("b", two)
    before = content(a), content(b)
    both = a.merged(b)
    both.agree("A", 77)
    both.diverge("B", 78)
    assert (content(a), content(b)) == before


@settings(max_examples=150, deadline=None)
@given(st.lists(hashes), st.lists(hashes))
def test_a_set_is_a_set_up_to_its_limit(one: list[int], two: list[int]) -> None:
    a, b = FingerprintSet(one, LIMIT), FingerprintSet(two, LIMIT)
    assert list(a) == sorted(set(one))[:LIMIT]
    assert list(a.union(b)) == sorted({*one, *two})[:LIMIT]
    assert FingerprintSet.from_bytes(a.to_bytes(), LIMIT) == a


def test_many_copies_of_one_input_are_one_piece_of_evidence() -> None:
    seen = Evidence("p")
    assert [seen.agree("A", 7) for _ in range(3)] == [True, False, False]
    for _ in range(50_000):
        seen.agree("A", 7)
    assert seen.clean == 1
    assert seen.compared == {"p": 50_003}


def test_divergences_count_by_occurrence_and_take_the_agreement_back() -> None:
    seen = Evidence("p")
    seen.agree("A", 1)
    seen.agree("A", 2)
    assert [seen.diverge("A", 1) for _ in range(3)] == [True, False, False]
    assert (seen.clean, seen.divergences) == (1, 3)
    assert not seen.agree("A", 1)
    assert seen.clean == 1


def test_an_input_that_diverged_first_is_no_evidence_later() -> None:
    seen = Evidence("p")
    assert not seen.diverge("A", 1)
    assert not seen.agree("A", 1)
    assert not seen.agree_generated("A", 1)
    assert seen.clean == seen.paths["A"].generated_only == 0


@settings(max_examples=100, deadline=None)
@given(actions)
def test_what_each_call_says_adds_up_to_the_count(done: list[tuple[str, str, int]]) -> None:
    """So the controller, which is told what was new and what was taken back, knows the same number."""
    seen, told = Evidence("p"), 0
    for action, path, value in done:
        if action == "agree":
            told += seen.agree(path, value)
        elif action == "diverge":
            told -= seen.diverge(path, value)
    assert told == seen.clean


def test_a_divergence_in_one_process_takes_back_the_agreement_of_another() -> None:
    one, other = Evidence("one"), Evidence("other")
    one.agree("A", 5)
    other.diverge("A", 5)
    assert one.merged(other).clean == 0


def test_generated_inputs_are_no_traffic() -> None:
    seen = Evidence("p")
    assert seen.agree_generated("A", 1)
    assert not seen.agree_generated("A", 1)
    assert seen.clean == 0
    assert seen.compared == {}
    assert seen.paths["A"].generated_only == 1
    seen.agree("A", 1)
    assert (seen.paths["A"].generated_only, seen.clean) == (0, 1)


def test_fresh_evidence_replaces_what_was_and_stays_so_after_a_merge() -> None:
    old, new = Evidence("old"), Evidence("new")
    old.agree("A", 1)
    new.refresh(2)
    assert old.merged(new).clean == new.merged(old).clean == 0
    late = Evidence("late")
    late.agree("A", 1)
    late.refresh_path("A", 2)
    late.agree("A", 9)
    assert list(old.merged(late).paths["A"].agreed) == [9]


def test_paths_beyond_those_kept_are_no_evidence_and_lose_no_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PATHS", 2)
    seen = Evidence("p")
    assert seen.agree("A", 1)
    assert seen.agree("B", 1)
    assert not seen.agree("C", 1)
    seen.diverge("C", 2)
    assert (seen.clean, seen.divergences) == (2, 1)
    assert MAX_PATHS > 2


def test_a_full_set_counts_no_more() -> None:
    full = FingerprintSet(range(100, 100 + LIMIT), LIMIT)
    assert full.is_full
    assert not full.add(1)
    assert len(full) == LIMIT
    assert 1 in full


@pytest.mark.parametrize(
    "data, why",
    [
        (b"1234567", "8 bytes each"),
        (bytes(16), "in order"),
        (bytes(7) + b"\2" + bytes(7) + b"\1", "in order"),
        (bytes(8 * (LIMIT + 1)), "more than"),
    ],
)
def test_damaged_bytes_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        FingerprintSet.from_bytes(data, LIMIT)


def test_a_fingerprint_depends_on_the_key_and_is_the_same_everywhere() -> None:
    assert fingerprint(b"x", b"k") == fingerprint(b"x", b"k") != fingerprint(b"x", b"l")
    assert 0 <= fingerprint(b"x", b"k") < 2**64
    with pytest.raises(ValueError, match="64 bits"):
        FingerprintSet([2**64])


@pytest.mark.parametrize("compared, unknown, blocks", [(999, 1, False), (998, 1, True), (0, 0, False), (0, 1, True)])
def test_over_a_thousandth_unknown_blocks(compared: int, unknown: int, blocks: bool) -> None:
    assert is_too_unknown(compared, unknown) is blocks
