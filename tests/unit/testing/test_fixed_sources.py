"""Runs with fixed sources: what they write is the same each time, and another seed changes it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import vesper
from tests.support.journal_file import stored_bytes
from vesper.config.settings import config_from
from vesper.effects.performer import Ask, EffectFailed
from vesper.testing import Sources, fixed_sources

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
NODE = """\
node_id: drawn_v1
type: event_handler
intent: Use everything that is random, and try again
inputs:
  event_id: string
  name: string
outputs:
  success: {{id: string, number: integer, at: timestamp, text: string}}
flow:
  - {{step: id, operation: uuid}}
  - {{step: number, operation: random, min: 1, max: 1000000}}
  - {{step: at, operation: clock}}
  - step: act
    operation: custom
    name: act
    request: {{name: name}}
    returns: string
    effect: keyed
    key: event_id
    retry: {{attempts: 3, on: [unavailable], backoff: {{base: 10s, factor: 2, max: 50s, jitter: full}}}}
  - operation: return
    success: {{id: id, number: number, at: at, text: act}}
performance:
  expected_latency_ms: 200
security:
  capabilities_required: [effect.call.act, clock.read.system, random.read.system]
  audit_level: detailed
{sensitive}"""


class Act:
    """Fails once for each run."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def perform(self, ask: Ask) -> object:
        if ask.execution not in self._seen:
            self._seen.add(ask.execution)
            raise EffectFailed("unavailable", "not now")
        return "done " * 5000  # more than stands in a line

    def probe(self, ask: Ask) -> object:
        raise AssertionError(ask)

    def close(self) -> None: ...


def written(folder: Path, sources: Sources, *, is_sensitive: bool, engine: str = "python") -> object:
    """Run the node twice and return the rows of the journal."""
    folder.mkdir()
    path = folder.parent / "drawn_v1.vsp"
    path.write_text(NODE.format(sensitive="  sensitive_data: [name]\n" if is_sensitive else ""), encoding="utf-8")
    values = {
        "grants": [{"nodes": ["*"], "allow": ["*"]}],
        "journal": {"dsn": f"sqlite:{folder / 'journal.db'}", "key_secret": "journal"},
        "recovery": {"enabled": False},
    }
    with vesper.Host(config_from(values, folder), performers={"custom": Act()}, sources=sources) as host:
        node = vesper.load(path, engine=engine, host=host)
        outcomes = [node(event_id=f"e{number}", name="Ann") for number in range(2)]
        assert all(each.ok for each in outcomes), outcomes
        assert outcomes[0]["at"] == NOW
        assert outcomes[0]["id"] != outcomes[1]["id"]
        executions = list(host.journal.executions())
        assert [problem for each in executions for problem in host.journal.verify(each)] == []
    return stored_bytes(folder / "journal.db")


def quick(seed: int) -> Sources:
    fixed = fixed_sources(NOW, seed)
    return Sources(fixed.now_ns, fixed.monotonic_ns, fixed.random_bytes, wait_scale=0)


@pytest.mark.parametrize("is_sensitive", [False, True])
def test_equal_sources_write_equal_bytes(tmp_path: Path, is_sensitive: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_SECRET_JOURNAL", "a master key of the journal")
    first = written(tmp_path / "first", quick(7), is_sensitive=is_sensitive)
    assert written(tmp_path / "second", quick(7), is_sensitive=is_sensitive) == first
    assert written(tmp_path / "third", quick(8), is_sensitive=is_sensitive) != first


def test_the_random_bytes_are_one_stream() -> None:
    parts, whole = fixed_sources(NOW, 3), fixed_sources(NOW, 3)
    assert b"".join(parts.random_bytes(size) for size in (1, 31, 5, 64)) == whole.random_bytes(101)
    assert fixed_sources(NOW, 4).random_bytes(8) != fixed_sources(NOW, 3).random_bytes(8)
