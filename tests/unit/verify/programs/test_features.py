"""Weights of the kinds of parts that one program draws."""

from __future__ import annotations

import random

from vesper.verify.programs.features import Features

_NAMES = [f"kind {number}" for number in range(200)]


def _features(seed: int) -> Features:
    return Features.draw(random.Random(f"features {seed}"))


def test_weights_do_not_depend_on_the_order_of_requests() -> None:
    forward, backward = _features(1), _features(1)
    found = {name: forward.weight(name) for name in _NAMES}
    assert {name: backward.weight(name) for name in reversed(_NAMES)} == found


def test_a_program_leaves_out_some_names_and_prefers_others() -> None:
    features = Features("1", absent_share=0.4, is_small=False)
    found = [features.weight(name, 2.0) for name in _NAMES]
    assert set(found) == {0.0, 2.0, 6.0}
    assert 50 < found.count(0.0) < 110
    assert Features("2", absent_share=0.4, is_small=False).weight("kind 0", 2.0) in {0.0, 2.0, 6.0}


def test_some_alternative_always_has_a_weight() -> None:
    features = Features("1", absent_share=1.0, is_small=False)
    assert features.weight("a") == 0.0
    assert features.weights({"a": 1.0, "b": 2.0}) == [1.0, 2.0]


def test_half_of_the_programs_are_small() -> None:
    assert 70 < sum(_features(seed).is_small for seed in range(200)) < 130


def test_names_are_weighed_alike_on_every_machine() -> None:
    features = Features("a1", absent_share=0.3, is_small=True)
    assert [features.weight(name) for name in _NAMES[:8]] == [0.0, 1.0, 1.0, 0.0, 3.0, 0.0, 0.0, 1.0]


def test_risk_scales_failing_parts_and_most_programs_avoid_them() -> None:
    drawn = [_features(seed) for seed in range(200)]
    assert all(each.risky(2.0) == 2.0 * each.risk for each in drawn)
    assert sum(each.risk < 0.2 for each in drawn) > 100
    assert any(each.risk == 1.0 for each in drawn)
