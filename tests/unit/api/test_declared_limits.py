"""Limits that a function declares under `performance` hold on every engine."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import vesper
from vesper.engines.registry import ENGINES

NODE = """node_id: {name}_v1
type: function
intent: Test
inputs:
  n: integer
outputs:
  success:
    result: integer
performance: {{{performance}}}
flow:
  - {{step: result, operation: compute, value: "{value}"}}
  - {{operation: return, success: [result]}}
"""


def write(folder: Path, name: str, performance: str, value: str) -> str:
    path = folder / f"{name}_v1.vsp"
    path.write_text(NODE.format(name=name, performance=performance, value=value), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_memory_limit_of_a_function(tmp_path: Path, engine: str) -> None:
    value = "length([x * 2 FOR x IN range(0, n)])"
    node = vesper.load(write(tmp_path, "small", "memory_limit_mb: 1", value), engine=engine)
    assert node(n=10).value == {"result": 10}
    outcome = node(n=100_000)
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.code) == ("limit_hit", "memory")
    usual = vesper.load(write(tmp_path, "usual", "memory_limit_mb: 64", value), engine=engine)
    assert usual(n=100_000).value == {"result": 100_000}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_time_limit_of_a_function(tmp_path: Path, engine: str) -> None:
    value = "sum(sum(sum(x * y * z FOR z IN range(0, n)) FOR y IN range(0, n)) FOR x IN range(0, n))"
    path = write(tmp_path, "slow", "timeout_seconds: 1", value)
    node = vesper.load(path, engine=engine)
    assert node.limits.seconds == 1.0
    node = vesper.load(path, engine=engine, limits=vesper.Limits(fuel=10**15, seconds=0.2))
    begun = time.monotonic()
    error = node(n=100_000).error
    assert error is not None
    assert error.code == "time"
    assert time.monotonic() - begun < 20


def test_a_caller_cannot_raise_them(tmp_path: Path) -> None:
    path = write(tmp_path, "small", "memory_limit_mb: 1, timeout_seconds: 1", "n")
    limits = vesper.load(path, limits=vesper.Limits(seconds=9, memory=1 << 30)).limits
    assert (limits.seconds, limits.memory) == (1.0, 1 << 20)
