"""Cases are run on both engines; a kept run passes; what is removed leaves no trace in the text."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.dashboard import TestClient, client_of
from vesper.dashboard.play import run
from vesper.dashboard.play.cases import listing

NODE = """\
node_id: fee_v1
type: function
intent: Find the fee of a payment
inputs: {amount: decimal}
outputs:
  success: {fee: decimal}
contracts:
  preconditions: [amount >= 0]
flow:
  - operation: return
    success: {fee: amount * 2}
"""
CASES = """
testing:
  test_cases:
    # the usual one
    - name: twice
      inputs: {amount: 2}
      expect: {fee: 4}
    - {name: "wrong", inputs: {amount: 3}, expect: {fee: 7}}
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder: Path = tmp_path_factory.mktemp("project")
    (folder / "nodes").mkdir()
    with client_of(folder) as opened:
        yield opened


def post(client: TestClient, path: str, text: str, **body: object) -> dict[str, Any]:
    answer = client.post(f"/play/api/{path}", json={"path": "fee_v1.vsp", "text": text, **body})
    found: dict[str, Any] = answer.json()
    return {**found, "status": answer.status_code}


def test_cases_are_met_on_both_engines_or_say_what_came(client: TestClient) -> None:
    met, failed = post(client, "cases", NODE + CASES)["cases"]
    assert (met["name"], met["line"], met["inputs"], met["passed"]) == ("twice", 16, {"amount": "2"}, True)
    assert (failed["passed"], failed["disagree"], failed["expect"]) == (False, False, '{"fee": "7"}')
    assert [each["engine"] for each in failed["answers"]] == ["python", "direct"]
    assert '"fee":"6"' in failed["answers"][0]["outcome"]


def test_cases_beyond_the_time_are_counted_and_not_run(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "LIST_SECONDS", 0)
    found = post(client, "cases", NODE + CASES)
    assert (found["cases"], found["omitted"]) == ([], 2)


@pytest.mark.parametrize(
    "path, body", [("tables", {}), ("code", {"kind": "python"}), ("flow", {}), ("form/example", {"seed": 1})]
)
def test_work_waits_for_its_turn(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, object]
) -> None:
    assert post(client, path, NODE, **body)["status"] == 200
    monkeypatch.setattr(run, "MAX_SECONDS", 0.01)
    monkeypatch.setattr(run, "_running", threading.BoundedSemaphore(1))
    with run.run_slot():
        assert post(client, path, NODE, **body)["status"] == 429


TEXTS = (
    NODE,
    NODE.rstrip("\n"),
    NODE + CASES,
    (NODE + CASES).replace("\n", "\r\n"),
    NODE + "\ntesting:\n  properties: []\n",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("amount, expect", [("2.50", '{"fee": "5.00"}'), ("-1", "breaks amount >= 0")])
def test_a_kept_run_is_a_case_that_passes(client: TestClient, text: str, amount: str, expect: str) -> None:
    added = post(client, "cases/add", text, name="kept: a run", inputs={"amount": amount})
    assert added["status"] == 200, added
    assert added["text"].startswith(NODE.rstrip("\n") if "\r" not in text else text)
    kept = post(client, "cases", added["text"])["cases"][-1]
    assert (kept["name"], kept["passed"], kept["expect"]) == ("kept: a run", True, expect)
    assert "now:" not in added["text"]
    removed = post(client, "cases/remove", added["text"], name="kept: a run")["text"]
    assert removed.rstrip() == text.rstrip()


def test_a_case_is_renamed_in_its_quotes_and_removed_with_its_comment(client: TestClient) -> None:
    renamed = post(client, "cases/rename", NODE + CASES, name="wrong", to='a "b"')["text"]
    assert renamed == (NODE + CASES).replace('"wrong"', '"a \\"b\\""')
    removed = post(client, "cases/remove", NODE + CASES, name="twice")["text"]
    assert "usual" not in removed
    assert removed.endswith('  test_cases:\n    - {name: "wrong", inputs: {amount: 3}, expect: {fee: 7}}\n')
    assert post(client, "cases/remove", removed, name="wrong")["text"] == NODE + "\n"


def test_refusals_say_why(client: TestClient) -> None:
    text = NODE + CASES
    assert "already" in post(client, "cases/add", text, name="twice", inputs={"amount": "1"})["detail"]
    assert "name" in post(client, "cases/add", text, name=" ", inputs={"amount": "1"})["detail"]
    assert "no outcome" in post(client, "cases/add", text, name="x", inputs={"amount": "y"})["detail"]
    assert "no case" in post(client, "cases/remove", text, name="other")["detail"]
    faulty = post(client, "cases", text.replace("amount * 2", "amuont"))
    assert (faulty["status"], "amuont" in faulty["faulty"]) == (200, True)
    assert post(client, "cases/add", text.replace("amount * 2", "amuont"), name="x", inputs={})["status"] == 422
