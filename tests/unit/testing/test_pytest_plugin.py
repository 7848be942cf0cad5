"""The pytest plugin in real runs of pytest over user projects."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.support.nodes import PAYMENT_DECISION
from vesper.engines.registry import ENGINES
from vesper.pytest_plugin import ENGINE_CHOICES

ROOT = Path(__file__).parents[3]

WRONG_FEE = """\
node_id: wrong_fee_v1
type: function
intent: A fee that may be negative

inputs:
  amount: decimal

outputs:
  success: {fee: decimal, doubled: decimal}

contracts:
  postconditions:
    - fee >= 0

flow:
  - operation: return
    success: {fee: amount * 0.1, doubled: amount * 2}

testing:
  test_cases:
    - name: a tenth
      inputs: {amount: 50}
      expect: {fee: 5.0, doubled: 100}
    - name: a fifth
      inputs: {amount: 50}
      expect: {fee: 10.0, doubled: 100}
    - name: a tenth
      inputs: {amount: 10}
      expect: {fee: 1.0}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's folder, and an environment with this tree's plugin."""
    (tmp_path / "project" / "nodes").mkdir(parents=True)
    (tmp_path / "project" / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    if not entry_points(group="pytest11", name="vesper"):
        installed = tmp_path / "installed" / "vesper_under_test-0.dist-info"
        installed.mkdir(parents=True)
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: vesper-under-test\nVersion: 0\n")
        (installed / "entry_points.txt").write_text("[pytest11]\nvesper = vesper.pytest_plugin\n")
    return tmp_path / "project"


def _node(project: Path, text: str) -> None:
    name = text.partition("node_id: ")[2].partition("\n")[0]
    (project / "nodes" / f"{name}.vsp").write_text(text, encoding="utf-8")


def _payment_decision(project: Path) -> None:
    (project / "nodes" / PAYMENT_DECISION.name).write_bytes(PAYMENT_DECISION.read_bytes())


def _pytest(project: Path, *arguments: str) -> tuple[int, str]:
    path = os.pathsep.join([str(ROOT), str(project.parent / "installed")])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "100"}
    others = (f"no:{name}" for name in ("cacheprovider", "hypothesispytest", "asyncio", "pytest-lsp", "anyio"))
    command = [sys.executable, "-m", "pytest", *(part for name in others for part in ("-p", name)), *arguments]
    done = subprocess.run(
        command,
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


def test_the_choices_are_the_engines() -> None:
    assert set(ENGINE_CHOICES) == {*ENGINES, "both"}


def test_cases_and_properties_are_tests(project: Path) -> None:
    _payment_decision(project)
    code, said = _pytest(project, "-v", "--vesper-engine", "both", "--vesper-max-examples", "20")
    assert code == 0, said
    for name in ("small payment, old customer", "nothing is worth zero", "properties"):
        assert f"nodes/payment_decision_v1.vsp::{name} PASSED" in said
    assert "3 passed" in said


def test_a_failure_is_about_the_node_and_has_no_traceback(project: Path) -> None:
    _node(project, WRONG_FEE)
    code, said = _pytest(project)
    assert code == 1
    assert "nodes/wrong_fee_v1.vsp .F.F" in said
    line = WRONG_FEE.split("\n").index("    - name: a fifth") + 1
    expected = [
        "error: case `a fifth` of wrong_fee_v1 is not met",
        f"  --> nodes/wrong_fee_v1.vsp:{line}",
        "           expected  actual",
        "  fee      10.0      5.0     <- differs",
        "  doubled  100       100",
        "error: a postcondition of wrong_fee_v1 breaks: `fee >= 0`",
    ]
    for each in expected:
        assert f"\n{each}\n" in said, each
    assert "Traceback" not in said
    assert ".py:" not in said


def test_selection_and_collection(project: Path) -> None:
    _node(project, WRONG_FEE)
    _payment_decision(project)
    code, said = _pytest(project, "--collect-only", "-q")
    assert code == 0
    assert said.split("\n")[:4] == [
        "nodes/payment_decision_v1.vsp::small payment, old customer",
        "nodes/payment_decision_v1.vsp::nothing is worth zero",
        "nodes/payment_decision_v1.vsp::properties",
        "nodes/wrong_fee_v1.vsp::a tenth",
    ]
    assert "nodes/wrong_fee_v1.vsp::a tenth#2\n" in said, "two tests with one id cannot be told apart"
    assert "7 tests collected" in said
    code, said = _pytest(project, "-k", "tenth")
    assert (code, "2 passed, 5 deselected" in said) == (0, True), said
    code, said = _pytest(project, "-x", "nodes/wrong_fee_v1.vsp")
    assert (code, "1 failed, 1 passed" in said) == (1, True), said
    code, said = _pytest(project, "nodes/wrong_fee_v1.vsp::a tenth")
    assert (code, "1 passed" in said) == (0, True), said


def test_settings(project: Path) -> None:
    _node(project, WRONG_FEE)
    ini = project / "pytest.ini"
    ini.write_text("[pytest]\nvesper_max_examples = 0\n", encoding="utf-8")
    code, said = _pytest(project, "--collect-only", "-q")
    assert (code, "::properties" in said) == (0, False)
    ini.write_text("[pytest]\nvesper_collect = false\n", encoding="utf-8")
    assert _pytest(project)[0] == 5, "there is nothing to run"
    for wrong, why in (
        ("vesper_engine = jvm", "`jvm` is not one of python, interp, jit, both"),
        ("vesper_seed = x", "`x` is not a whole number"),
        ("vesper_max_examples = -1", "must be 0 or more"),
    ):
        ini.write_text(f"[pytest]\n{wrong}\n", encoding="utf-8")
        code, said = _pytest(project)
        assert (code, why in said) == (4, True), said


def test_a_node_with_errors_fails_alone(project: Path) -> None:
    _node(project, WRONG_FEE.replace("amount * 0.1", "amont * 0.1"))
    _payment_decision(project)
    code, said = _pytest(project, "--vesper-max-examples", "1")
    assert code == 1
    assert "the node has errors, so none of its tests ran" in said
    assert "did you mean `amount`?" in said
    assert "1 failed, 3 passed" in said


def test_a_project_without_nodes_loads_nothing_of_vesper(project: Path) -> None:
    heavy = ["vesper.compiler", "vesper.engines", "vesper.cli", "vesper.verify", "libcst", "yaml", "sqlglot"]
    (project / "test_nothing.py").write_text(
        f"import sys\n\ndef test_nothing():\n    assert 'vesper.pytest_plugin' in sys.modules\n"
        f"    assert not [name for name in {heavy!r} if name in sys.modules]\n",
        encoding="utf-8",
    )
    code, said = _pytest(project)
    assert code == 0, said


def test_the_fixture(project: Path) -> None:
    _payment_decision(project)
    (project / "test_decision.py").write_text(
        """
from decimal import Decimal

import pytest

GIVEN = {"balance": "100.00", "currency": "USD", "country": "DE", "user_age_days": 400}


def test_the_outputs(vesper_node):
    assert vesper_node("payment_decision")(amount="50.00", **GIVEN)["fee"] == Decimal("1.75")


def test_any_outcome(vesper_node):
    outcome = vesper_node("payment_decision_v1").outcome({"amount": 0, **GIVEN})
    assert (outcome.kind, outcome.phase) == ("contract_broken", "precondition")


def test_no_outputs(vesper_node):
    vesper_node("payment_decision")(amount="0", **GIVEN)


def test_no_node(vesper_node):
    vesper_node("paymnt_decision")
""",
        encoding="utf-8",
    )
    code, said = _pytest(project, "test_decision.py", "--vesper-engine", "both")
    assert code == 1
    assert "2 failed, 2 passed" in said, said
    assert "precondition broken: `amount > 0`" in said
    assert "did you mean `payment_decision`" in said


ASKING = """\
node_id: rates_v1
type: event_handler
intent: Ask for a rate
inputs: {event_id: string, currency: string}
outputs:
  success: {rate: decimal}
flow:
  - step: quote
    operation: external_api_call
    provider: rates
    method: GET
    endpoint: /v1/{currency}
    effect: read
    expect: {rate: decimal}
  - {operation: return, success: {rate: quote.rate}}
security: {capabilities_required: [network.http_client.rates]}
"""


def test_the_fixture_for_nodes_with_effects(project: Path) -> None:
    _node(project, ASKING)
    (project / "test_rates.py").write_text(
        """
from decimal import Decimal

import pytest
import vesper


@pytest.fixture
def rate(vesper_stubs):
    node = vesper.load("rates", host=vesper_stubs)
    return lambda currency: node(event_id="e1", currency=currency)["rate"]


def test_answered(vesper_stubs, rate):
    vesper_stubs.answer("quote", {"rate": "1.10"})
    assert rate("EUR") == Decimal("1.10")
    vesper_stubs.assert_asked("quote", endpoint="/v1/EUR")


def test_nobody_answers(rate):
    rate("EUR")


def test_not_used(vesper_stubs, rate):
    vesper_stubs.answer("quote", {"rate": 1})
    vesper_stubs.answer("quote", {"rate": 2}, when={"endpoint": "/v1/CHF"})
    assert rate("EUR") == 1


def test_failed_already(vesper_stubs, rate):
    vesper_stubs.answer("quote", {"rate": 1}, times=2)
    assert rate("EUR") == 2


@pytest.mark.xfail(strict=True)
def test_expected_to_fail(vesper_stubs):
    vesper_stubs.answer("quote", 1)
    raise ValueError


def test_skipped(vesper_stubs):
    vesper_stubs.answer("quote", 1)
    pytest.skip("no time")


def test_the_other_fixture(vesper_node):
    vesper_node("rates")
""",
        encoding="utf-8",
    )
    code, said = _pytest(project, "test_rates.py")
    assert code == 1
    assert "3 failed, 2 passed, 1 skipped, 1 xfailed, 1 error" in said, said
    assert "nobody answers `quote` (http_request) of rates_v1" in said
    assert 'host.answer("quote", {"rate": Decimal("1.00")})' in said
    assert "ERROR at teardown of test_not_used" in said
    assert "answers that were not used:" in said
    assert 'when={endpoint: "/v1/CHF"}) at test_rates.py:26: it was never asked for' in said
    assert "assert Decimal('1') == 2" in said
    assert "and answer its requests with the fixture vesper_stubs" in said
