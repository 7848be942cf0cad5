"""A sandboxed worker: nothing leaves it, and nodes run in it as elsewhere."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.support.journalled import invoke
from tests.support.nodes import PAYMENT_DECISION, compiled, compiled_text
from tests.unit.migration.support.escaping_worker import ATTEMPTS
from vesper.engines.outcome import LimitHit
from vesper.engines.registry import ENGINES
from vesper.migration.workers import sandbox
from vesper.migration.workers import wire_values as packed
from vesper.migration.workers.child import Child
from vesper.migration.workers.isolation import Workers
from vesper.migration.workers.sandboxed import SandboxedProgram, SandboxEngine, sandbox_workers

INPUTS = {
    "amount": Decimal("150.00"),
    "balance": Decimal("9876.54"),
    "currency": "GBP",
    "country": "FR",
    "user_age_days": 812,
    "flagged": True,
}
ENDLESS = """node_id: endless_v1
type: function
intent: Count for a long time
inputs: {rounds: integer}
outputs: {success: {total: integer}}
flow:
  - operation: return
    success:
      total: SUM(SUM(b FOR b IN range(0, rounds)) FOR a IN range(0, rounds))
"""


@pytest.fixture(scope="module")
def escaping() -> Iterator[Child]:
    Path("/tmp/vesper-canary").write_text("x", encoding="utf-8")
    module = "tests.unit.migration.support.escaping_worker"
    child = Child(module, "512", sandbox.ARGUMENT, environment=sandbox.environment())
    hello = child.ask(packed.message({"do": "hello"}), 20)
    assert hello["hello"] is True
    yield child
    child.close()
    Path("/tmp/vesper-canary").unlink()


def attempt(child: Child, what: str) -> dict[str, Any]:
    answer: dict[str, Any] = child.ask(packed.message({"do": "try", "what": what}), 20)
    return answer


@pytest.mark.parametrize("what", ATTEMPTS)
def test_nothing_leaves_the_sandbox(what: str, escaping: Child) -> None:
    answer = attempt(escaping, what)
    assert answer.get("raised") in ("PermissionError", "RuntimeError"), answer
    assert not list(Path("/tmp").glob("vesper-escaped*"))


def test_a_worker_has_few_variables_and_descriptors(escaping: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    assert attempt(escaping, "variables")["got"] == ["LC_ALL", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH"]
    # 0 to 2, the life pipe, and the two pipes of messages.
    assert len(attempt(escaping, "descriptors")["got"]) == 6
    assert attempt(escaping, "read the library")["got"] == 'r"""'[:3]


def test_the_kernel_of_ci_lacks_nothing() -> None:
    SandboxEngine().load(compiled(PAYMENT_DECISION))
    assert sandbox_workers().lacks == ()


def test_outcomes_equal_those_of_the_engine() -> None:
    node = compiled(PAYMENT_DECISION)
    program, plain = SandboxEngine().load(node), ENGINES["interp"].load(node)
    for changes in ({}, {"amount": Decimal(-1)}, {"country": 7}, {"amount": Decimal(99999)}):
        assert program.call(INPUTS | changes) == plain.call(INPUTS | changes)
    loaded = vesper.load(PAYMENT_DECISION, isolation="sandbox")
    text = json.dumps({**INPUTS, "amount": 150, "balance": 9876}, default=str).encode()
    assert loaded.run_json(text) == vesper.load(PAYMENT_DECISION, engine="interp").run_json(text)
    assert loaded(**INPUTS).ok


def test_a_late_execution_is_a_limit_and_the_next_one_runs() -> None:
    workers = Workers(size=1, deadline=0.5, is_sandboxed=True)
    workers.start()
    assert workers.wait_until_up(20)
    program = SandboxedProgram(compiled_text(ENDLESS), workers)
    run_json = program.json_entry()
    assert run_json is not None
    assert program.call({"rounds": 1_000_000}, None, vesper.Limits(fuel=10**12, seconds=0.2)) == LimitHit("time")
    assert json.loads(run_json(b'{"rounds": 3}')) == {"kind": "returned", "value": {"total": 9}}
    workers.close()


def test_threads_wait_for_a_worker() -> None:
    program = SandboxEngine().load(compiled(PAYMENT_DECISION))
    expected = program.call(INPUTS)
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(program.call(INPUTS))) for _ in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert found == [expected] * 12


def test_the_command_runs_a_node_in_the_sandbox() -> None:
    inputs = [f"-i{name}={str(value).lower() if value is True else value}" for name, value in INPUTS.items()]
    done = invoke("run", str(PAYMENT_DECISION), "--sandbox", *inputs)
    assert done.exit_code == 0, done.output
    assert "approve" in done.output
    for more, said in ((("--engine", "python"), "omit --engine"), (("--case", "x"), "cannot be combined with --case")):
        refused = invoke("run", str(PAYMENT_DECISION), "--sandbox", *more)
        assert refused.exit_code == 2
        assert said in refused.output


@pytest.mark.parametrize("more", [{"engine": "jit"}, {"engine": "auto"}, {"results": True}])
def test_what_leaves_the_sandbox_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="omit engine and results"):
        vesper.load(PAYMENT_DECISION, isolation="sandbox", **more)
    with pytest.raises(ValueError, match="no isolation `process`"):
        vesper.load(PAYMENT_DECISION, isolation="process")  # type: ignore[arg-type]  # that is what is tested
