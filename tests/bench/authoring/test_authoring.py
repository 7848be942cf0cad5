"""The tasks for authors: solvable as written, and a score that tells right answers from wrong ones."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from tests.bench.authoring.author import node_of
from tests.bench.authoring.run import main
from tests.bench.authoring.tasks import Task, judge, load_tasks
from tests.support.models.replies import Asked, Fault, Reply
from tests.support.models.server import KEY, ModelServer

TASKS = {each.name: each for each in load_tasks()}
WRONG = {
    "line_totals": ("net * 0.19", "net * 0.20"),
    "luhn": ("> 4 THEN e.value * 2 - 9", "> 5 THEN e.value * 2 - 9"),
    "roman": ("letters: IV", "letters: IIII"),
    "merge_intervals": ("i.start <= open.end", "i.start < open.end"),
}
"""Mistakes that `vesper check` does not see."""


def solution(task: Task) -> str:
    return task.solution.source.text


def without_cases(task: Task) -> str:
    return solution(task).partition("testing:")[0]


def test_there_are_thirty_tasks_with_a_text_and_hidden_cases() -> None:
    assert len(TASKS) == 30
    for each in TASKS.values():
        assert len(each.text) > 100
        assert len(each.solution.cases) >= 3
        assert "flow:" not in each.prompt()
        assert "test_cases" not in each.prompt()
        assert re.findall(r"^\w+", each.interface, re.MULTILINE)[:3] == ["node_id", "type", "intent"]


@pytest.mark.parametrize("name", TASKS)
def test_a_reference_solution_solves_its_task(name: str) -> None:
    verdict = judge(TASKS[name], without_cases(TASKS[name]))
    assert (verdict.is_solved, verdict.report, verdict.failed) == (True, None, ())


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_found_by_a_hidden_case(name: str) -> None:
    text = without_cases(TASKS[name]).replace(*WRONG[name])
    assert text != without_cases(TASKS[name])
    verdict = judge(TASKS[name], text)
    assert (verdict.is_solved, verdict.report) == (False, None)
    assert verdict.failed


@pytest.mark.parametrize(
    "change, report",
    [
        (("net * 0.19", "net * rate"), "VSP1102"),
        (("line_totals_v1", "line_totals_v2"), "the task asks for line_totals_v1"),
        (("tax: decimal, gross", "taxes: decimal, gross"), "VSP"),
        (("type: function", "type: agent"), "VSP"),
        (("pieces: integer, price: decimal", "pieces: decimal, price: decimal"), "not those of the task"),
    ],
)
def test_an_attempt_that_is_no_answer_is_reported(change: tuple[str, str], report: str) -> None:
    verdict = judge(TASKS["line_totals"], without_cases(TASKS["line_totals"]).replace(*change))
    assert not verdict.is_solved
    assert verdict.report is not None
    assert report in verdict.report


def test_the_node_of_an_answer_is_its_last_block() -> None:
    assert node_of("Text\n```yaml\nnode_id: a_v1\n```\nand\n```yaml\nnode_id: b_v1\n```\n") == "node_id: b_v1\n"
    assert node_of("```python\nx\n```") == "```python\nx\n```"
    assert node_of("node_id: a_v1") == "node_id: a_v1"


def author(asked: Asked) -> Reply | Fault:
    """Play an author: right at once, right after diagnostics, wrong in a hidden case, always invalid, or refused."""
    name = re.findall(r"node_id: (\w+)_v1", asked.texts[0])[-1]
    has_diagnostics = "vesper check:" in asked.texts[-1]
    match name:
        case "luhn":
            text = without_cases(TASKS[name]).replace(*WRONG[name])
        case "initials":
            text = (
                without_cases(TASKS[name]) if has_diagnostics else without_cases(TASKS[name]).replace("MAX(", "max_of(")
            )
        case "caesar":
            text = "I cannot do this."
        case "roman":
            return Fault(400, message="not today")
        case _:
            text = solution(TASKS[name])
    return Reply(f"Here it is:\n\n```yaml\n{text}```\n", input_tokens=1_000, output_tokens=200)


def test_the_score_tells_right_from_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VESPER_SECRET_MODEL_KEY", KEY)
    with ModelServer(author) as server:
        (tmp_path / "vesper.toml").write_text(
            "[models.writer]\n"
            f'api = "anthropic"\nbase_url = "http://127.0.0.1:{server.port}"\nallow_http = true\n'
            'allow_private_addresses = true\nmodel = "any"\nkey_secret = "model_key"\n'
            'prices = {input = "3", output = "15"}\ncontext = 100000\nmax_output = 8000\n'
        )
        monkeypatch.chdir(tmp_path)
        code = main(["--model", "writer", "--tasks", "luhn,initials,caesar,roman,palindrome", "--tries", "3"])
        asked = server.asked
    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    assert code == 1
    assert rows["palindrome"][1:6] == ["solved", "1", "1,000", "200", "0.006000"]
    assert rows["initials"][1:6] == ["solved", "2", "2,000", "400", "0.012000"]
    assert rows["luhn"][1:3] == ["failed", "1"]
    assert rows["caesar"][1:3] == ["failed", "3"]
    assert rows["roman"][1:3] == ["failed", "0"]
    assert rows["2"][1:7] == ["of", "5", "solved", "7", "7,000", "1,400"]
    assert Decimal(rows["2"][7]) == Decimal("0.042")
    assert all("# The language, for models" in each.system for each in asked)
    assert not any("test_cases" in text for each in asked for text in each.texts if "vesper check" not in text)


@pytest.mark.parametrize(
    "options, problem",
    [
        (["--model", "writer", "--tasks", "sudoku"], "no task is called sudoku"),
        (["--model", ""], "name a model"),
        (["--model", "writer", "--config", "absent.toml"], "absent.toml"),
    ],
)
def test_options_that_make_no_sense(options: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(options)
    assert problem in capsys.readouterr().err
