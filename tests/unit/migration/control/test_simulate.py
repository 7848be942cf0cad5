"""The simulator: equal in jumps and step by step, and the properties of the controller in short."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.migration.support.stories import node, told
from vesper.migration.control.modes import Mode, Reason
from vesper.migration.control.simulate import (
    Positions,
    Result,
    Scenario,
    Simulation,
    Tally,
    simulate,
    simulate_all,
    step_by_step,
)
from vesper.migration.control.state import Agreed, Tick

_PATH = "faulty"
"""Name that the simulator gives to the only path of a node."""
SCENARIOS = {
    "clean": Scenario(5_000, 0.0),
    "open": Scenario(5_000, 1e-3),
    "closed at once": Scenario(5_000, 1e-3, close_after=0),
    "closed later": Scenario(5_000, 3e-3, close_after=50),
    "a path": Scenario(5_000, 0.2, path_share=0.05, close_after=10),
    "a path that is always wrong": Scenario(5_000, 1.0, path_share=1e-3, close_after=0),
    "most of the traffic": Scenario(2_500, 1e-2, path_share=0.9, close_after=0),
    "appears in canary": Scenario(5_000, 0.01, appears_in=Mode.CANARY_DIRECT, close_after=5),
    "few inputs": Scenario(5_000, 1e-3, distinct=400, close_after=0),
    "one input": Scenario(3_000, 0.0, distinct=1),
    "no path": Scenario(3_000, 0.5, path_share=0.0),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_jumps_are_equal_to_steps(name: str) -> None:
    for seed in range(2):
        assert simulate(SCENARIOS[name], seed) == step_by_step(SCENARIOS[name], seed)


def test_jumps_are_equal_to_steps_through_all_modes() -> None:
    """With a sample of a tenth, so that the fault in direct_only is found within the test."""
    scenario = Scenario(6_000, 0.02, appears_in=Mode.DIRECT_ONLY, close_after=200, sample=1_000)
    start, _ = told(node(), [Agreed(_PATH, 107_000, 107_000), Tick()])
    jumped = Simulation(scenario, 3, start).run()
    assert jumped == Simulation(scenario, 3, start).run(jumps=False)
    assert jumped.is_promoted
    assert {each.reason for each in jumped.changes} > {Reason.EVIDENCE}
    assert jumped.wrong_answers > 0
    assert jumped.detected_at is not None


def test_a_run_ends_early_only_where_nothing_can_change() -> None:
    for seed in range(5):
        scenario = Scenario(30_000, 0.05)
        stopped, whole = simulate(scenario, seed), Simulation(scenario, seed).run(stops=False)
        assert stopped.changes == whole.changes
        assert (stopped.wrong_answers, stopped.detected_at) == (whole.wrong_answers, whole.detected_at)
        assert stopped.state.mode is whole.state.mode


def of(scenario: Scenario, seeds: int) -> Result:
    tally = Tally(scenario)
    for run in simulate_all(scenario, range(seeds)):
        tally.add(run)
    return tally.result()


@pytest.mark.parametrize("close_after", [None, 0])
def test_a_rate_of_one_in_ten_thousand_is_not_promoted(close_after: int | None) -> None:
    assert of(Scenario(10**6, 1e-4, close_after=close_after), 25).promoted == 0


def test_a_clean_node_is_promoted_at_the_promised_request() -> None:
    run = simulate(Scenario(10**6, 0.0), 0)
    assert [(each.after.value, each.at_us) for each in run.changes] == [
        ("canary_direct", 206),
        ("dual_verify", 10_814),
        ("direct_only", 108_231),
    ]


@pytest.mark.parametrize("close_after", [None, 0])
def test_a_rare_path_that_is_always_wrong_never_answers(close_after: int | None) -> None:
    result = of(Scenario(10**6, 1.0, path_share=3e-5, close_after=close_after), 40)
    assert result.wrong_answers_max == 0
    assert close_after is None or result.promoted > 0, "the rest of the node goes on, with the path compared"


def test_a_fault_that_appears_in_direct_only_is_found_in_the_sample() -> None:
    result = of(Scenario(10**6, 0.01, appears_in=Mode.DIRECT_ONLY), 400)
    assert (result.promoted, result.detected) == (400, 400)
    assert result.detection_requests_mean == pytest.approx(10_000, rel=0.2)
    assert result.wrong_answers_mean == pytest.approx(99, rel=0.2)


def test_one_input_a_million_times_never_leaves_shadow() -> None:
    run = simulate(Scenario(10**6, 0.0, distinct=1), 0)
    assert (run.state.mode, run.changes, run.state.clean) == (Mode.SHADOW_DIRECT, (), 1)


def test_a_seed_is_a_history_and_another_seed_is_another() -> None:
    scenario = SCENARIOS["closed later"]
    assert simulate(scenario, 1) == simulate(scenario, 1)
    assert simulate(scenario, 1).detected_at != simulate(scenario, 2).detected_at


@pytest.mark.parametrize("chance", [0.0, 0.001, 0.3, 1.0])
def test_positions_come_with_their_chance(chance: float) -> None:
    drawn = Positions(chance, 9, "test").skip(100_000)
    assert abs(drawn - 100_000 * chance) <= 5 * (100_000 * chance * (1 - chance)) ** 0.5
    one_by_one = Positions(chance, 9, "test")
    assert sum(one_by_one.take(request) for request in range(1, 100_001)) == drawn


@pytest.mark.parametrize("change", [{"requests": -1}, {"fault_rate": 1.5}, {"path_share": -0.1}])
def test_impossible_scenarios_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"cannot be|between 0 and 1"):
        replace(Scenario(10, 0.1), **change)  # type: ignore[arg-type]
