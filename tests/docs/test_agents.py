"""The pages about agents: the flow that an agent means, and the table of names."""

from __future__ import annotations

import inspect
import random
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.docs.test_code_blocks import blocks_of
from tests.support.console import ROOT
from vesper.testing import Stubs, model
from vesper.verify.inputs.model_answers import ModelAnswers

SPEC = ROOT / "docs" / "spec" / "agents.md"
NAMES = ROOT / "docs" / "reference" / "agents-names.md"
FAILURES = ("rate_limit", "overloaded", "budget_exceeded")
CONVERSATIONS = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("agents")
    for block in blocks_of(SPEC):
        (found / Path(block.name).name).write_text(block.text, encoding="utf-8")
    return found


def behaviour(answers: ModelAnswers, seed: int) -> Any:
    """Return answers that depend on the seed and on the number of the question."""

    def answer(question: model.Question) -> model.Reply:
        chance = random.Random(f"{seed} {question.number}")
        if chance.random() < 0.05:
            return model.fails(chance.choice(FAILURES))
        found: Any = answers.draw(question.body, chance) or {"text": "null"}
        called = (model.ToolCall(each["name"], each["arguments"], each["id"]) for each in found.get("tool_calls", ()))
        return model.Answer(found["text"], tuple(called), found.get("output"), found.get("stop", "end"))

    return answer


def test_an_agent_means_the_flow_that_its_page_shows(folder: Path) -> None:
    answers = ModelAnswers(vesper.load(str(folder / "stock_clerk_v1.vsp"))._compiled.node)
    found: list[list[tuple[Any, list[Any]]]] = []
    for name, engine in (("stock_clerk", "python"), ("stock_steps", "interp")):
        runs = []
        with Stubs() as host:
            node = vesper.load(str(folder / f"{name}_v1.vsp"), host=host, engine=engine)
            for seed in range(CONVERSATIONS):
                script = model.Script(host, behaviour(answers, seed))
                outcome = node(question="How many bolts?")
                end = outcome.error.fields if outcome.error is not None else outcome.unwrap()
                runs.append((end, [each.body for each in script.questions]))
        found.append(runs)
    assert found[0] == found[1]
    ends = [end for end, _ in found[0]]
    assert {"refused", "repairs", "length"} <= {each.get("reason") for each in ends}
    assert sum("pieces" in each for each in ends) > 10
    assert any("the arguments do not fit" in str(asked) for _, asked in found[0])


def test_every_name_of_the_founding_document_has_one_of_ours_that_exists() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `([\w.]+)` \|", NAMES.read_text(encoding="utf-8"), re.MULTILINE)
    theirs = (
        "Agent AgentExecution AgentState Tool ToolCall ToolResult ToolRegistry LLMClient LLMProvider Message Config"
    )
    assert [name for name, _ in rows] == [*theirs.split(), "SageAgentSDK"]
    for _, ours in rows:
        assert exists(ours), ours
    assert not exists("vesper.agents.Toolbox")


def exists(name: str) -> bool:
    """Return whether a dotted name is a module, or a member of one or of its class."""
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            if not hasattr(found, part):  # an attribute of instances is set in the constructor
                return inspect.isclass(found) and f"self.{part}:" in inspect.getsource(found)
            found = getattr(found, part)
        return True
    return False
