"""`vesper nodes cost`: totals, steps, models, missing bounds, and models that are not configured."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from tests.support.nodes import ROOT
from vesper.cli.nodes.command import command

SETTINGS = """
[models.claude]
api = "ollama"
model = "local"
prices = {input = "3", output = "15"}
context = 8000
timeout = "30s"
"""


def cost(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["cost", *arguments, "--nodes", str(ROOT / "nodes")])


def test_a_budget_bounds_the_totals() -> None:
    lines = cost("reply_check", "--model", "claude-sonnet-4-5").output.splitlines()
    assert lines[:6] == [
        "reply_check_v1: the most of one execution",
        "  requests           6",
        "  input tokens  30,000",
        "  output tokens  1,800",
        "  money          $0.02",
        "  time           2m 1s",
    ]
    assert lines[-1] == "Steps and models are shown without budgets, which hold for the totals."


def test_the_place_without_a_bound_is_named() -> None:
    found = cost("contract_review", "--model", "gpt-5")
    assert found.output.splitlines()[-1] == "note: `reviews` is unbounded: nothing bounds its rounds"
    data = json.loads(cost("contract_review", "--model", "gpt-5", "--format", "json").output)
    assert data["total"]["usd"] is None
    assert data["unbounded"] == {"reviews": "nothing bounds its rounds"}


def test_a_configured_model_has_its_own_prices(tmp_path: Path) -> None:
    config = tmp_path / "vesper.toml"
    config.write_text(SETTINGS, encoding="utf-8")
    found = json.loads(cost("concierge", "--config", str(config), "--format", "json").output)
    assert found["total"]["requests"] == 9
    assert found["models"]["claude"]["input_tokens"] == 9 * 8000
    assert found["total"]["usd"] == f"{(9 * 8000 * 3 + 9 * 400 * 15) / 1_000_000:.6f}"


def test_unknown_models_are_named(tmp_path: Path) -> None:
    config = tmp_path / "vesper.toml"
    config.write_text("", encoding="utf-8")
    missing = cost("reply_check", "--config", str(config))
    assert missing.exit_code == 1
    assert "reply_check_v1 asks `claude`, which is not configured: configure [models.claude]" in missing.output
    wrong = cost("reply_check", "--model", "claude-sonnet-9")
    assert wrong.exit_code == 2
    assert "did you mean `claude-sonnet-5`" in wrong.output


def test_a_node_that_asks_no_model_costs_nothing() -> None:
    assert cost("order_lookup").output == "order_lookup_v1: the most of one execution\n  it asks no model\n"
