"""`[migration]`: what is wrong is said as whoever wrote it would fix it."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.unit.migration.support.routed import compiled, routes_in
from vesper.config.migration import MigrationSettings
from vesper.config.settings import config_from
from vesper.effects.settings import ConfigError

_TOLERANCE = {"absolute": "0.01", "version": 1, "until": "2027-01-31", "why": "the old engine rounds half up"}


def settings(**given: Any) -> MigrationSettings:
    return config_from({"migration": given}, Path("/shop")).migration_settings()


def with_tolerance(**other: Any) -> MigrationSettings:
    return settings(nodes={"fee_v1": {"tolerances": {"fee": {**_TOLERANCE, **other}}}})


@pytest.mark.parametrize(
    "given, said",
    [
        ({"canary": 5}, 'canary: a share as a text, from "1 %" to "5 %", is expected, not 5'),
        ({"canary": "20 %"}, 'canary: a share as a text, from "1 %" to "5 %", is expected, not `20 %`'),
        ({"canary": "5"}, "is expected, not `5`"),
        ({"sample": "0 %"}, 'sample: a share as a text, from "0.01 %" to "100 %", is expected, not `0 %`'),
        ({"follow_cpu": 0.25}, 'from "0.1 %" to "6400 %", is expected, not 0.25'),
        ({"refresh": "1h"}, "refresh: from 50ms to 10s is expected"),
        ({"hold": "10ms"}, "hold: from 1s to 1d is expected"),
        ({"deadline": "1ms"}, "deadline: from 10ms to 1h is expected"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_expected(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(**given)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "given, said",
    [
        ({"absolute": 0.01}, 'absolute: a positive number as a text, such as "0.01", is expected, not 0.01'),
        ({"absolute": "-1"}, "is expected, not `-1`"),
        ({"until": "31.1.2027"}, "until: a day such as 2027-01-31 is expected, not `31.1.2027`"),
        ({"until": 2027}, "until: a day such as 2027-01-31 is expected, not 2027"),
    ],
)
def test_a_tolerance_that_cannot_be_read(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        with_tolerance(**given)
    assert said in str(caught.value)


@pytest.mark.parametrize("until", ["2027-01-31", date(2027, 1, 31)])
def test_a_day_may_be_one_of_toml(until: object) -> None:
    assert with_tolerance(until=until).of("fee_v1").tolerances[0].until == date(2027, 1, 31)


def test_a_node_may_be_named_without_its_version_and_a_version_wins() -> None:
    found = settings(nodes={"fee": {"max_mode": "dual_verify"}, "fee_v2": {"max_mode": "shadow_direct"}})
    modes = [found.of(each).max_mode for each in ("fee_v1", "fee_v2", "fees_v1")]
    assert modes == ["dual_verify", "shadow_direct", None]


def test_a_routing_key_that_is_no_input_is_refused(tmp_path: Path) -> None:
    """It would be the same for all: everybody in the canary, or nobody."""
    routes = routes_in(tmp_path, nodes={"payment_decision_v1": {"routing_key": ["contry"]}})
    try:
        with pytest.raises(ConfigError, match=r"`contry` is no input; there are amount, .*; did you mean `country`"):
            routes.program(compiled())
    finally:
        routes.close()
