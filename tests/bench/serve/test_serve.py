"""Check what `make bench-serve` makes of its numbers, and that it measures no wrong answer."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.bench.serve.contestants import Contestant, contestants
from tests.bench.serve.run import Measured, check, ratios
from tests.bench.workloads import W1, Wrong


def measured(cost: float, p99: int) -> Measured:
    return Measured([cost * 2, cost], [1.0], [1000.0], [p99 // 2], [p99, p99 * 9, p99 // 2], 50.0)


def test_ratios_are_of_best_rounds_and_of_the_best_other() -> None:
    found = {"vesper": measured(10, 200), "axum": measured(8, 100), "fastapi": measured(160, 900)}
    found |= {"litestar": measured(90, 500), "blacksheep": measured(55, 300), "robyn": measured(80, 400)}
    last = ratios(found)
    assert (last["vs_axum"], last["vs_fastapi"], last["vs_others"]) == (0.8, 16.0, 5.5)
    assert last["p99_us"]["blacksheep"] == 300
    assert last["is_quickest"]
    assert not ratios({**found, "robyn": measured(80, 150)})["is_quickest"]


def test_every_server_of_the_bars_takes_part() -> None:
    assert [each.name for each in contestants()] == ["vesper", "axum", "fastapi", "litestar", "blacksheep", "robyn"]


class _Server:
    """Responds with the reference, changed."""

    def __init__(self, change: Any, bad_status: int = 422) -> None:
        self._change, self._bad_status = change, bad_status

    def post(self, path: str, value: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return 200, self._change(W1.reference(value))

    def request(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        return self._bad_status, {}, b"{}"


def test_a_wrong_server_is_not_measured() -> None:
    contestant = Contestant("x", [])
    check(contestant, cast(Any, _Server(lambda found: found)))
    with pytest.raises(Wrong, match="expected"):
        check(contestant, cast(Any, _Server(lambda found: {**found, "fee": "0"})))
    with pytest.raises(Wrong, match="breaks a precondition"):
        check(contestant, cast(Any, _Server(lambda found: found, bad_status=200)))
