"""Rounds: nodes that grow get more inputs, workers share without overlap, nothing repeats after a resumption."""

from __future__ import annotations

from vesper.verify.rounds import INPUTS_PER_ROUND, MAX_INTERVAL, PROGRAMS_PER_ROUND, Rounds, Unit, restored_turns


def take(rounds: Rounds, count: int, growing: frozenset[int] = frozenset()) -> list[Unit]:
    units = []
    for _ in range(count):
        unit = rounds.next()
        if unit is None:
            break
        rounds.record(unit, unit.node in growing)
        units.append(unit)
    return units


def test_a_round_is_every_node_and_then_programs() -> None:
    units = take(Rounds(nodes=2, max_inputs=1000, max_programs=1000), 3)
    assert [each.node for each in units] == [0, 1, None]
    assert units[0].numbers == range(1, INPUTS_PER_ROUND + 1)
    assert units[2].numbers == tuple(range(PROGRAMS_PER_ROUND))


def test_a_node_that_stopped_growing_gets_ever_fewer_inputs() -> None:
    units = take(Rounds(2, 10**6, 10**6), 300, growing=frozenset({1}))
    rounds_of = {node: [each.round for each in units if each.node == node] for node in (0, 1)}
    assert rounds_of[1] == list(range(len(rounds_of[1]))), "one that grows has a turn in every round"
    gaps = [b - a for a, b in zip(rounds_of[0], rounds_of[0][1:], strict=False)]
    assert gaps[:6] == [2, 4, 8, 16, 32, MAX_INTERVAL]
    assert set(gaps[5:]) == {MAX_INTERVAL}


def test_numbers_follow_each_other_up_to_the_maximum() -> None:
    units = take(Rounds(1, 50, 30), 1000)
    inputs = [number for each in units if each.node == 0 for number in each.numbers]
    programs = [number for each in units if each.node is None for number in each.numbers]
    assert inputs == list(range(1, 51))
    assert programs == list(range(30))


def test_workers_share_without_overlap() -> None:
    whole = take(Rounds(5, 100, 100), 10_000)
    shares = [take(Rounds(5, 100, 100, worker, 3), 10_000) for worker in range(3)]

    def numbers(units: list[Unit]) -> list[tuple[int, int]]:
        return sorted((-1 if each.node is None else each.node, number) for each in units for number in each.numbers)

    assert numbers([unit for share in shares for unit in share]) == numbers(whole)


def test_a_dropped_node_has_no_turn() -> None:
    rounds = Rounds(2, 100)
    assert take(rounds, 1)[0].node == 0
    rounds.drop(1)
    assert {each.node for each in take(rounds, 100)} == {0}


def test_an_earlier_run_is_continued() -> None:
    rounds = Rounds(2, 100, 60, done_programs=frozenset(range(25)), turns=restored_turns({0: (40, 1), 1: (100, 8)}))
    units = take(rounds, 1000)
    assert [number for each in units if each.node == 0 for number in each.numbers] == list(range(41, 101))
    assert not [each for each in units if each.node == 1], "it has had its maximum"
    assert [number for each in units if each.node is None for number in each.numbers] == list(range(25, 60))
