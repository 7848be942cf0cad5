"""`vesper run --explain` as text, JSON and Markdown, of pure nodes and of journalled runs; the field of traces."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from vesper.cli.main import vesper

PAYMENT = Path(__file__).parents[3] / "nodes" / "payments" / "payment_decision_v1.vsp"
INPUTS = ["-i", "amount=50", "-i", "balance=100", "-i", "currency=USD", "-i", "country=DE", "-i", "user_age_days=400"]
LOOKUP = """\
node_id: lookup_v1
type: http_handler
intent: Look a price up
inputs: {sku: string, pieces: integer}
outputs: {success: {is_large: boolean}, error: {error_code: "enum[unknown]", message: string}}
flow:
  - step: price
    operation: database_query
    query: SELECT cents FROM prices WHERE sku = :sku
    bind: [sku]
    returns: optional<integer>
  - raise: {error_code: unknown, message: "no {sku}"}
    when: price IS NULL
  - return: {is_large: price * pieces > 1000}
security: {capabilities_required: [database.read.prices]}
"""
SETTINGS = """\
[[grants]]
nodes = ["lookup"]
allow = ["database.read.prices"]

[databases.main]
dsn = "sqlite:prices.db"

[journal]
dsn = "sqlite:journal.db"
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(vesper, ["run", *arguments])


def test_text_follows_the_outcome_and_markdown_replaces_it() -> None:
    text = run(str(PAYMENT), *INPUTS, "--explain")
    assert text.exit_code == 0
    outcome, _, why = text.output.partition("\nwhy: ")
    assert "decision     approve" in outcome
    assert "line 41 if `flagged` is false (flagged false)" in why
    assert "balance 51.749 instead of 100" in why
    report = run(str(PAYMENT), *INPUTS, "--explain", "--format", "md")
    assert report.output.startswith("# payment_decision_v1\n\ndecision ")
    assert "| 41 | if | flagged | false | flagged false |  | 1 |" in report.output


def test_json_has_a_field_that_is_the_same_on_every_engine() -> None:
    found = []
    for engine in ("python", "interp", "jit", "both"):
        result = run(str(PAYMENT), *INPUTS, "--explain", "--format", "json", "--engine", engine)
        assert result.exit_code == 0, result.output
        found.append(json.loads(result.output)["explanation"])
    assert all(each == found[0] for each in found)
    assert found[0]["nearest"]["changes"] == [{"input": "balance", "from": "100", "to": "51.749"}]


@pytest.mark.parametrize(
    "options, message",
    [
        (["--format", "md"], "--format md is a form of explanations: add --explain"),
        (["--explain", "--sandbox"], "--explain cannot be combined with --sandbox"),
        (["--explain", "--case", "small"], "--explain cannot be combined with --case"),
    ],
)
def test_options_that_exclude_each_other(options: list[str], message: str) -> None:
    result = run(str(PAYMENT), *INPUTS, *options)
    assert result.exit_code == 2
    assert message in result.output


def test_a_journalled_run_is_explained_with_its_recorded_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lookup_v1.vsp").write_text(LOOKUP)
    (tmp_path / "vesper.toml").write_text(SETTINGS)
    with closing(sqlite3.connect(tmp_path / "prices.db")) as connection:
        connection.execute("CREATE TABLE prices (sku text PRIMARY KEY, cents integer)")
        connection.execute("INSERT INTO prices VALUES ('pen', 99)")
        connection.commit()
    result = run("lookup_v1.vsp", "-i", "sku=pen", "-i", "pieces=3", "--explain", "--format", "json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.output)
    why = document["explanation"]
    assert [(each["text"], each["holds"], each["values"]) for each in why["conditions"]] == [
        ("price IS NULL", False, {"price": 99})
    ]
    assert why["nearest"]["changes"] == [{"input": "pieces", "from": 3, "to": 11}]
    shown = CliRunner().invoke(vesper, ["traces", "show", document["execution"], "--format", "json"])
    assert shown.exit_code == 0, shown.output
    field = json.loads(shown.output)["explanation"]
    assert field == {**why, "nearest": None}
