"""Commands and options in the CI workflows exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from tests.support.nodes import ROOT
from vesper.cli.main import vesper

TO_COPY = ROOT / "docs" / "how-to" / "workflows" / "vesper-nodes.yml"
OURS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS = [*OURS, TO_COPY]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
_OF_THE_SHELL = ("echo", "maturin", "pip", "python")


def read(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def steps(workflow: dict[Any, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def problem(line: str) -> str | None:
    """Return the problem of a workflow's command."""
    words = shlex.split(re.sub(r"\$\{\{ [a-z.]+ \}\}|\$\{?SEED\}?", "1", line))
    while words and re.match(r"[A-Z]+=", words[0]):
        words = words[1:]
    if ">" in words:
        words = words[: words.index(">")]
    if not words or words[0] in _OF_THE_SHELL:
        return None
    program = Path(words[0]).name
    if program == "vesper":
        return _vesper_problem(words[1:])
    if program == "make":
        missing = [word for word in words[1:] if "=" not in word and word not in TARGETS]
        return f"no target {missing}" if missing else None
    return None if (ROOT / words[0]).is_file() else f"no program {words[0]}"


def _vesper_problem(words: list[str]) -> str | None:
    context = click.Context(vesper)
    try:
        command = vesper.get_command(context, words[0])
        if command is None:
            return f"no command {words[0]}"
        command.make_context(words[0], words[1:], parent=context)  # parses without running
    except click.UsageError as error:
        return error.format_message()
    return None


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_command_is_real(path: Path) -> None:
    runs = [step["run"] for step in steps(read(path)) if "run" in step]
    lines = [line for run in runs for line in run.splitlines() if line.strip()]
    assert lines
    assert [found for line in lines if (found := problem(line)) is not None] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_step_runs_something(path: Path) -> None:
    workflow = read(path)
    assert True in workflow, "`on:` is what YAML 1.1 reads as true"
    for step in steps(workflow):
        assert ("run" in step) != ("uses" in step), step
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "a/b@v1")), step
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


def test_pull_requests_have_a_fixed_seed_and_nights_print_theirs() -> None:
    runs = {path.name: "\n".join(step.get("run", "") for step in steps(read(path))) for path in WORKFLOWS}
    assert "--seed 1 --seconds" in runs["ci.yml"]
    assert "--seed 1 --seconds" in runs["vesper-nodes.yml"]
    for name in ("nightly.yml", "vesper-nodes.yml"):
        assert 'SEED="$(date' in runs[name]
        assert 'echo "seed $SEED' in runs[name]
        assert '--seed "$SEED"' in runs[name]


def test_the_page_shows_the_workflow_as_it_is() -> None:
    page = (ROOT / "docs" / "how-to" / "use-in-ci.md").read_text(encoding="utf-8")
    assert f"```yaml\n{TO_COPY.read_text(encoding='utf-8')}```" in page


def test_a_command_that_is_not_there_is_noticed() -> None:
    assert problem("vesper verify nodes --no-such-option") is not None
    assert problem("vesper verify nodes --seconds soon") is not None
    assert problem("vesper no-such-command") is not None
    assert problem("make no-such-target") is not None
    assert problem("./no-such-script") is not None
