"""Results of functions that are kept: the same outcomes, only where asked for, and never past a change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.support.servers import Redis, free_port
from tests.unit.api.given import CLOCK, ENGINES, NODES, PAYMENT, written
from tests.unit.api.test_warm import CHANGES, FEE, PRICE, RATE
from vesper.api import default_hosts as hosting
from vesper.api.caches import cache_stats, clear_caches
from vesper.config.settings import config_from
from vesper.engines.engine import Limits, Program
from vesper.engines.outcome import LimitHit, Outcome
from vesper.host import results as module
from vesper.host.results import CachedProgram, results_of, shared_of

DIVIDED = """\
node_id: divided_v1
type: function
intent: Divide, and give back lists that a caller may change
inputs:
  amount: decimal
  by: decimal
  many: array<integer>
outputs:
  success:
    share: decimal
    many: array<integer>
    seen: set<string>
    when: date
  error:
    error_code: enum[no_share]
    message: string
contracts:
  preconditions:
    - amount >= 0
flow:
  - operation: raise
    when: by == 13
    error: {error_code: no_share, message: thirteen}
  - operation: return
    success:
      share: amount / by
      many: many
      seen: "to_set(['a'])"
      when: date('2024-02-29')
"""


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    hosting._results.clear()
    yield
    hosting._results.clear()


class Counted:
    """A program that counts how often it is called."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.calls = 0
        self.semantic_hash = program.semantic_hash
        self.start = program.start

    def call(self, inputs: Any, now: Any = None, limits: Any = None) -> Outcome:
        self.calls += 1
        return self._program.call(inputs, now, limits)


def cached(
    file: Path, engine: str = "python", settings: dict[str, Any] | None = None, results: Any = None
) -> tuple[CachedProgram, Counted]:
    node = vesper.load(file, engine=engine)
    found = config_from({"cache": {"results": settings or {}}}, file.parent).results
    counted = Counted(node._program)
    program = CachedProgram(node._compiled, counted, engine, results or results_of(found), found.shares_sensitive)
    return program, counted


GIVEN = {"amount": Decimal("1.00"), "by": Decimal(3), "many": [1, 2]}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "change, calls",
    [
        ({}, 1),
        ({"by": Decimal(0)}, 1),
        ({"by": Decimal(13)}, 1),
        ({"amount": Decimal(-1)}, 2),
        ({"amount": "x"}, 2),
    ],
    ids=["returned", "failed", "declared error", "contract broken", "refused"],
)
def test_an_outcome_is_the_same_whether_it_was_kept_or_not(
    tmp_path: Path, engine: str, change: dict[str, Any], calls: int
) -> None:
    program, counted = cached(written(tmp_path, DIVIDED), engine)
    inputs = GIVEN | change
    plain = vesper.load(tmp_path / "nodes" / "divided_v1.vsp", engine=engine)._program.call(inputs)
    one, two = program.call(inputs), program.call(inputs)
    assert one == two == plain
    assert repr(one) == repr(two) == repr(plain), "to the letter, with the scale of decimals and the order of fields"
    assert counted.calls == calls


def test_what_is_given_out_is_the_callers_own(tmp_path: Path) -> None:
    program, counted = cached(written(tmp_path, DIVIDED))
    for _ in range(3):
        value: Any = program.call(GIVEN).value  # type: ignore[union-attr]
        assert value["many"] == [1, 2]
        value["many"].append(3)
        value["share"] = None
    assert counted.calls == 1


@pytest.mark.parametrize(
    "other",
    [{"amount": Decimal("1.0")}, {"amount": Decimal("1.001")}, {"many": [2, 1]}, {"by": Decimal("3.0")}],
    ids=["scale", "value", "order", "scale of another"],
)
def test_other_inputs_are_another_result(tmp_path: Path, other: dict[str, Any]) -> None:
    program, counted = cached(written(tmp_path, DIVIDED))
    program.call(GIVEN)
    assert repr(program.call(GIVEN | other)) == repr(counted.call(GIVEN | other))
    assert counted.calls == 3
    program.call(GIVEN | {"amount": "1.00", "many": (1, 2)})
    assert counted.calls == 3, "other objects that are the same values"


def test_limits_are_part_of_it_and_one_that_is_hit_is_not_kept(tmp_path: Path) -> None:
    program, counted = cached(NODES / "orders" / "order_pricing_v1.vsp")
    items = [{"qty": 1, "unit_price": Decimal("1.00"), "category": "food"}] * 3
    program.call({"items": items})
    for _ in range(2):
        assert program.call({"items": items}, None, Limits(fuel=1)) == LimitHit("fuel")
    assert counted.calls == 3
    program.call({"items": items}, None, Limits(seconds=60))
    program.call({"items": items}, None, Limits(seconds=60))
    assert counted.calls == 5, "the clock may end it: it is run"


def _written_all(folder: Path) -> Path:
    for text in (PRICE, FEE, RATE):
        written(folder, text)
    return folder / "nodes" / "price_v1.vsp"


@pytest.mark.parametrize("what", [what for what, (_, total) in CHANGES.items() if total is not None])
def test_a_change_anywhere_in_what_it_depends_on_counts(tmp_path: Path, what: str) -> None:
    file = _written_all(tmp_path)
    program, _ = cached(file)
    results = program.results
    assert program.call({"amount": Decimal(1)}).value == {"total": Decimal("1.10")}  # type: ignore[union-attr]
    change, total = CHANGES[what]
    change(tmp_path / "nodes")
    again, counted = cached(file, results=results)
    assert again.call({"amount": Decimal(1)}).value == {"total": total}  # type: ignore[union-attr]
    assert counted.calls == 1


@pytest.mark.parametrize("what", ["compiler", "engine", "nothing"])
def test_another_vesper_or_engine_counts(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, DIVIDED)
    program, _ = cached(file)
    program.call(GIVEN)
    if what == "compiler":  # of which Python and its version are a part
        monkeypatch.setattr(module, "source_hash", lambda: b"another")
    again, counted = cached(file, "interp" if what == "engine" else "python", results=program.results)
    again.call(GIVEN)
    assert counted.calls == (0 if what == "nothing" else 1)


def test_what_is_no_function_of_its_inputs_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"depends on when it runs.*give it the time as input"):
        vesper.load(written(tmp_path, CLOCK), results=True)
    asking = next(each for each in NODES.rglob("*.vsp") if "external_api_call" in each.read_text())
    with pytest.raises(ValueError, match=r"asks for effects.*`cache` step"):
        vesper.load(asking, results=True)
    with pytest.raises(ValueError, match="needs one engine"):
        vesper.load(written(tmp_path, DIVIDED), results=True, engine="auto")


# -- who asks for it ------------------------------------------------------------------------------


def _settled(folder: Path, text: str) -> None:
    (folder / "vesper.toml").write_text(text)


def _is_kept(node: vesper.Node) -> bool:
    return isinstance(node._program, CachedProgram)


@pytest.mark.parametrize("name", ["divided", "divided_v1"])
def test_nodes_are_kept_that_the_configuration_names(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VESPER_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path, DIVIDED)
    assert not _is_kept(vesper.load(file)), "nobody asked for it"
    _settled(tmp_path, f'[cache.results]\nnodes = ["{name}"]\nttl = "1h"\n')
    node = vesper.load(file)
    assert _is_kept(node)
    assert not _is_kept(vesper.load(file, results=False))
    for _ in range(3):
        assert node(GIVEN).value == vesper.load(file, results=False)(GIVEN).value
        assert node.call(GIVEN)["many"] == [1, 2]
    stats = cache_stats()["l3"]
    assert (stats["hits"], stats["misses"], stats["entries"]) == (5, 1, 1)
    assert clear_caches(("l3",)) == {"l3": 1}
    assert cache_stats()["l3"]["entries"] == 0
    _settled(tmp_path, '[cache.results]\nnodes = ["another"]\n')
    assert not _is_kept(vesper.load(file))


def test_a_configuration_that_names_what_cannot_be_kept_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VESPER_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    _settled(tmp_path, '[cache.results]\nnodes = ["stamp"]\n')
    with pytest.raises(vesper.ConfigError, match=r"cache\.results\.nodes: stamp_v1 depends on when"):
        vesper.load(written(tmp_path, CLOCK))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"ttl": "0s"}, "millisecond at least"),
        ({"url": "http://x"}, "redis://host"),
        ({"node": ["x"]}, "no such setting"),
        ({"prefix": ""}, "not empty"),
        ({"wait": "7d"}, "hour at most"),
    ],
    ids=["ttl", "url", "name", "prefix", "wait"],
)
def test_settings_that_make_no_sense_are_refused(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(vesper.ConfigError, match=message):
        config_from({"cache": {"results": settings}}, tmp_path)


# -- in Redis -------------------------------------------------------------------------------------


def _shared(redis: Redis, **more: Any) -> dict[str, Any]:
    return {"url": redis.url, "prefix": "test:", **more}


@pytest.mark.parametrize(
    "change", [{}, {"by": Decimal(0)}, {"by": Decimal(13)}], ids=["returned", "failed", "declared"]
)
def test_processes_share_results_to_the_letter(tmp_path: Path, redis_server: Redis, change: dict[str, Any]) -> None:
    file, settings = written(tmp_path, DIVIDED), _shared(redis_server)
    first, counted = cached(file, settings=settings)
    second, other = cached(file, settings=settings)
    inputs = GIVEN | change
    assert repr(first.call(inputs)) == repr(second.call(inputs)) == repr(counted.call(inputs))
    assert (counted.calls, other.calls) == (2, 0)
    assert second.results.counters.shared_hits == 1
    shared = shared_of(config_from({"cache": {"results": settings}}, tmp_path).results)
    assert shared is not None
    assert shared.size() == 1, "and no lock is left"
    assert shared.clear() == 1
    assert shared.size() == 0


def _poisoned(value: bytes) -> Callable[[bytes], bytes]:
    return lambda _: value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04.",
        b"[]",
        b'{"kind":"returned","value":{}}',
        b'{"kind":"returned","value":{"share":"x","many":[],"seen":[],"when":"2024-01-01"}}',
        b'{"kind":"failed","value":["bad_input",0]}',
        b'{"kind":"failed","value":["no_such_code",0]}',
        b'{"kind":"denied","value":"x"}',
        b'{"kind":"returned"}',
    ],
    ids=["empty", "pickle", "list", "missing", "wrong type", "bad input", "code", "kind", "no value"],
)
def test_what_somebody_else_wrote_there_is_taken_only_as_an_outcome_of_the_node(
    tmp_path: Path, redis_server: Redis, data: bytes
) -> None:
    file, settings = written(tmp_path, DIVIDED), _shared(redis_server)
    program, counted = cached(file, settings=settings)
    key = program._key(GIVEN, None)
    assert key is not None
    shared = shared_of(config_from({"cache": {"results": settings}}, tmp_path).results)
    assert shared is not None
    shared.put(key, data, 60)
    assert repr(program.call(GIVEN)) == repr(counted.call(GIVEN))
    assert program.results.counters.refused == 1
    assert cached(file, settings=settings)[0].call(GIVEN) == counted.call(GIVEN), "and it is written over"
    shared.clear()


def test_sensitive_results_stay_in_memory_unless_somebody_allows_it(tmp_path: Path, redis_server: Redis) -> None:
    text = f"{DIVIDED}security:\n  sensitive_data: [amount]\n"
    file = written(tmp_path, text)
    kept = _shared(redis_server)
    shared = shared_of(config_from({"cache": {"results": kept}}, tmp_path).results)
    assert shared is not None
    program, counted = cached(file, settings=kept)
    program.call(GIVEN)
    program.call(GIVEN)
    assert (counted.calls, shared.size()) == (1, 0)
    cached(file, settings=kept | {"shares_sensitive": True})[0].call(GIVEN)
    assert shared.clear() == 1


def test_a_lock_of_a_process_that_died_ends(tmp_path: Path, redis_server: Redis) -> None:
    settings = _shared(redis_server, wait="100ms")
    program, counted = cached(written(tmp_path, DIVIDED), settings=settings)
    shared = shared_of(config_from({"cache": {"results": settings}}, tmp_path).results)
    key = program._key(GIVEN, None)
    assert shared is not None
    assert key is not None
    token = shared.lock(key, 0.05)
    assert token is not None
    assert shared.lock(key, 0.05) is None
    program.call(GIVEN)
    assert counted.calls == 1
    assert program.results.counters.waits >= 1
    mine = shared.lock("x", 10)
    assert mine is not None
    shared.unlock("x", "of another")
    assert shared.lock("x", 10) is None, "only who has it gives it back"
    shared.unlock("x", mine)
    assert shared.lock("x", 10) is not None
    shared.clear()


def test_without_redis_everything_is_worked_out_and_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = {"url": f"redis://127.0.0.1:{free_port()}/0", "timeout": "200ms"}
    program, counted = cached(written(tmp_path, DIVIDED), settings=settings)
    with caplog.at_level(logging.WARNING, "vesper.cache"):
        for number in range(3):
            program.call(GIVEN | {"amount": Decimal(number)})
        program.call(GIVEN | {"amount": Decimal(0)})
    assert counted.calls == 3, "its own memory helps all the same"
    assert program.results.counters.shared_failures == 1
    assert len(caplog.records) == 1


def test_payment_decision_through_the_front_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = NODES / "payments" / "payment_decision_v1.vsp"
    node, plain = vesper.load(file, results=True), vesper.load(file)
    for inputs in (PAYMENT, PAYMENT | {"amount": "0"}, PAYMENT | {"amount": "x"}):
        for _ in range(2):
            one, other = node(inputs), plain(inputs)
            assert (one.value, one.error) == (other.value, other.error)
