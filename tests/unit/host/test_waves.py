"""A wave on a real server: performed side by side, journalled in written order, recovered by path."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dying import run_dying
from tests.support.web import Got, Script, Web, Wire, message
from tests.unit.host.small import host_in, kinds, node_from
from vesper.host.host import Host

_SECONDS = 0.2
_READS = """
node_id: looked_up_v1
type: event_handler
intent: Ask three shops
inputs: {event_id: string}
outputs:
  success: {a: json, b: json, c: json}
flow:
STEPS
  - operation: return
    success: {a: a, b: b, c: c}
security:
  capabilities_required: [network.http_client.shop]
"""
_ANSWERS = {"a": 1, "b": 2, "c": 3}
_CALL = "{step: NAME, operation: external_api_call, provider: shop, method: METHOD, endpoint: /NAME, MORE}"


def _steps(method: str, more: str, is_parallel: bool) -> str:
    calls = [_CALL.replace("METHOD", method).replace("MORE", more).replace("NAME", name) for name in "abc"]
    if not is_parallel:
        return "\n".join(f"  - {each}" for each in calls)
    return "\n".join(["  - operation: parallel", "    steps:", *(f"      - {each}" for each in calls)])


def _reads(is_parallel: bool = True) -> str:
    return _READS.replace("STEPS", _steps("GET", "", is_parallel))


def _writes() -> str:
    more = """effect: keyed, key: "'NAME-' + event_id", body: {x: 1}"""
    return _READS.replace("STEPS", _steps("POST", more, True)).replace("looked_up_v1", "ordered_v1")


class _Shops(Web):
    """Three shops that take their time; they answer in another order than they are asked."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str] = []
        for value, name in enumerate("abc", 1):
            self.on(f"/{name}", self._slow(value))

    def _slow(self, value: int) -> Script:
        def script(got: Got, wire: Wire) -> None:
            key = got.headers.get("idempotency-key")
            if key is not None:
                self.keys.append(key)
            wire.wait(_SECONDS - 0.01 * value)
            wire.send(message(200, str(value).encode(), {"Content-Type": "application/json"}))

        return script


@pytest.fixture
def shops() -> Iterator[_Shops]:
    web = _Shops()
    yield web
    web.close()


def _settings(web: Web) -> dict[str, object]:
    return {"providers": {"shop": {"base_url": web.url, "allow_http": True, "allow_private_addresses": True}}}


@pytest.mark.parametrize("engine", ["python", "jit"])
def test_three_calls_take_the_time_of_one(tmp_path: Path, shops: _Shops, engine: str) -> None:
    with host_in(tmp_path, _settings(shops)) as host:
        took = {}
        for is_parallel in (True, False):
            node = node_from(
                _reads(is_parallel).replace("looked", f"looked_{is_parallel}".lower()), tmp_path, host, engine
            )
            node(event_id="7")  # connections are open now
            began = time.perf_counter()
            outcome = node(event_id="7")
            took[is_parallel] = time.perf_counter() - began
            assert {name: outcome[name] for name in "abc"} == _ANSWERS
            assert [each for each in kinds(host, outcome) if each.startswith("INTENT")] == []
        assert took[True] < took[False] / 2


@pytest.mark.parametrize("engine", ["python", "jit"])
def test_intents_are_durable_together_in_written_order(tmp_path: Path, shops: _Shops, engine: str) -> None:
    with host_in(tmp_path, _settings(shops)) as host:
        outcome = node_from(_writes(), tmp_path, host, engine)(event_id="7")
        assert {name: outcome[name] for name in "abc"} == _ANSWERS
        written = [each for each in kinds(host, outcome) if each.partition(" ")[0] in ("INTENT", "RESULT")]
        assert written[:3] == ["INTENT a", "INTENT b", "INTENT c"]
        assert sorted(written[3:]) == ["RESULT a", "RESULT b", "RESULT c"]


@pytest.mark.parametrize(
    "engine, place",
    [
        *itertools.product(["python", "jit"], ["intent.committed", "effect.performed:2", "result.appended:3"]),
    ],
)
def test_a_wave_that_was_cut_short_is_finished(tmp_path: Path, shops: _Shops, engine: str, place: str) -> None:
    (tmp_path / "ordered_v1.vsp").write_text(_writes().lstrip("\n"), encoding="utf-8")
    settings = tmp_path / "vesper.toml"
    settings.write_text(
        f'[[grants]]\nnodes = ["*"]\nallow = ["*"]\n[providers.shop]\nbase_url = "{shops.url}"\n'
        "allow_http = true\nallow_private_addresses = true\n"
        '[journal]\ndsn = "sqlite:journal.db"\n[recovery]\nenabled = false\n',
        encoding="utf-8",
    )
    run_dying(settings, tmp_path / "ordered_v1.vsp", engine, place, event_id="7")
    with Host.from_file(settings) as host:
        found = host.recover()
    assert len(found) == 1, found
    assert set(shops.keys) == {"a-7", "b-7", "c-7"}, "every effect once, by its key"
    assert len(shops.keys) <= 6
