"""`vesper run` of nodes with effects: what it says where something is not granted, not configured or fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.journalled import invoke
from tests.support.nodes import compiled
from vesper.cli.output.outcomes import outcome_lines
from vesper.effects.custom.performer import effect, unregister
from vesper.engines.outcome import LimitHit

REPOSITORY = Path(__file__).parents[3]
NODE = """\
node_id: greet_v1
type: event_handler
intent: Greet somebody in the words of the application
inputs:
  event_id: string
  name: string
outputs:
  success: {text: string}
flow:
  - step: greeting
    operation: custom
    name: greeting_of_the_day
    request: [name]
    effect: read
    returns: string
  - step: kept
    operation: file
    action: write
    root: greetings
    path: "{name}.txt"
    content: greeting
  - operation: return
    success: {text: greeting}
security:
  capabilities_required: [effect.call.greeting_of_the_day, filesystem.write.greetings]
"""
MODULE = """\
import vesper

@vesper.effect("greeting_of_the_day", effect_class="read", request={"name": "string"}, response="string")
def greeting(name):
    return f"hello {name}"
"""
GRANTS = '[[grants]]\nnodes = ["greet"]\nallow = ["effect.*", "filesystem.*"]\n\n[files.greetings]\npath = "kept"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a node and no settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "nodes").mkdir()
    (tmp_path / "kept").mkdir()
    (tmp_path / "nodes" / "greet_v1.vsp").write_text(NODE, encoding="utf-8")
    return tmp_path


def settings(folder: Path, more: str = "") -> None:
    (folder / "vesper.toml").write_text(f"{GRANTS}\n{more}", encoding="utf-8")


def test_everything_that_is_not_granted_is_named_with_the_reason(folder: Path) -> None:
    done = invoke("run", "greet", "-i", "event_id=e", "-i", "name=ann")
    assert done.exit_code == 1
    assert "  effect.call.greeting_of_the_day: nothing in the configuration grants it\n" in done.stderr
    assert "  filesystem.write.greetings: nothing in the configuration grants it\n" in done.stderr
    assert "there is no vesper.toml from here upwards" in done.stderr
    (folder / "vesper.toml").write_text(
        GRANTS + '\n[[grants]]\nnodes = ["*"]\ndeny = ["filesystem.write.*"]\n', encoding="utf-8"
    )
    done = invoke("run", "greet", "-i", "event_id=e", "-i", "name=ann", "--format", "json")
    assert json.loads(done.stdout)["why"] == [
        "filesystem.write.greetings: grants[1] denies `filesystem.write.*`",
        f"the grants are those of {folder / 'vesper.toml'}",
    ]


def test_an_effect_that_nobody_registered_is_told_before_anything_is_done(folder: Path) -> None:
    settings(folder)
    done = invoke("run", "greet", "-i", "event_id=e", "-i", "name=ann")
    assert done.exit_code == 1
    assert (
        "which nobody registered here: name the module with its @vesper.effect under [effects] modules" in done.stderr
    )
    assert not (folder / ".vesper" / "journal.db").exists()


def test_a_secret_that_is_not_there_is_told_before_anything_is_done(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VESPER_SECRET_PLACE_OF_GREETINGS", raising=False)
    text = NODE.replace("filesystem.write.greetings]", "filesystem.write.greetings, secrets.read.place_of_greetings]")
    text = text.replace("flow:\n", "flow:\n  - {step: place, operation: secret, name: place_of_greetings}\n")
    text = text.replace(
        "custom\n    name: greeting_of_the_day\n    request: [name]\n    effect: read\n    returns: string",
        "compute\n    value: name",
    )
    text = text.replace("effect.call.greeting_of_the_day, ", "")
    (folder / "nodes" / "greet_v1.vsp").write_text(text, encoding="utf-8")
    settings(folder)
    (folder / "vesper.toml").write_text(GRANTS.replace('"effect.*"', '"secrets.*"'), encoding="utf-8")
    words = ["run", "greet", "-i", "event_id=e", "-i", "name=ann"]
    done = invoke(*words)
    assert done.exit_code == 1
    assert "the variable VESPER_SECRET_PLACE_OF_GREETINGS is not set" in done.stderr
    assert not (folder / ".vesper" / "journal.db").exists()
    monkeypatch.setenv("VESPER_SECRET_PLACE_OF_GREETINGS", "behind the door")
    assert invoke(*words).exit_code == 0


def test_a_module_beside_the_settings_is_found_by_the_installed_command(folder: Path) -> None:
    settings(folder, '[effects]\nmodules = ["greetings_of_ours"]\n')
    (folder / "greetings_of_ours.py").write_text(MODULE, encoding="utf-8")
    below = folder / "below"
    below.mkdir()
    # As the command is started: neither its folder nor the working directory is the one of the settings.
    code = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); from vesper.cli.main import main; main()"
    words = ["run", "greet", "--nodes", str(folder / "nodes"), "-i", "event_id=e", "-i", "name=ann"]
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=below,
        env={**os.environ, "VESPER_CACHE": "off"},
    )
    assert ran.returncode == 0, ran.stderr
    assert "text  hello ann" in ran.stdout


@pytest.mark.parametrize(
    "module, said",
    [
        ("raise ValueError('broken today')", "cannot be imported: ValueError: broken today"),
        ("import nothing_of_that_name", "cannot be imported: No module named 'nothing_of_that_name'"),
        ("x = (", "cannot be imported: SyntaxError: "),
    ],
)
def test_a_module_that_cannot_be_imported_is_a_mistake_of_the_settings(folder: Path, module: str, said: str) -> None:
    settings(folder, '[effects]\nmodules = ["broken_module_of_ours"]\n')
    (folder / "broken_module_of_ours.py").write_text(module, encoding="utf-8")
    done = invoke("run", "greet", "-i", "event_id=e", "-i", "name=ann")
    assert done.exit_code == 1
    assert f"vesper.toml: effects.modules: `broken_module_of_ours` {said}" in done.stderr


def test_what_the_other_side_said_of_a_failure_is_shown(folder: Path) -> None:
    settings(folder, '[effects]\nmodules = ["failing_greetings_of_ours"]\n')
    (folder / "failing_greetings_of_ours.py").write_text(
        MODULE.replace(
            'return f"hello {name}"', 'raise vesper.EffectFailed("unavailable", "nobody is up yet")'
        ).replace('"greeting_of_the_day"', '"failing_greeting"'),
        encoding="utf-8",
    )
    (folder / "nodes" / "greet_v1.vsp").write_text(
        NODE.replace("greeting_of_the_day", "failing_greeting"), encoding="utf-8"
    )
    words = ["run", "greet", "-i", "event_id=e", "-i", "name=ann"]
    done = invoke(*words)
    assert done.exit_code == 1
    assert "error: unavailable" in done.stderr
    assert "   = nobody is up yet\n" in done.stderr
    execution = next(line.split()[1] for line in done.stderr.splitlines() if line.startswith("execution "))
    assert f"`vesper journal show {execution[:18]}`" in done.stderr
    assert json.loads(invoke(*words, "--format", "json").stdout)["why"] == ["nobody is up yet"]


def test_who_set_a_limit_that_was_hit_is_told(folder: Path) -> None:
    settings(folder)
    text = NODE.replace("flow:\n", "performance: {memory_limit_mb: 1}\nflow:\n")
    (folder / "nodes" / "greet_v1.vsp").write_text(text, encoding="utf-8")
    (folder / "inputs.json").write_text(json.dumps({"event_id": "e", "name": "n" * (2 << 20)}), encoding="utf-8")

    @effect("greeting_of_the_day", effect_class="read")
    def never(name: str) -> str:
        raise AssertionError("the inputs alone are over the limit")

    try:
        done = invoke("run", "greet", "--json", "inputs.json")
    finally:
        unregister("greeting_of_the_day")
    assert done.exit_code == 1
    said = "error: limit hit: memory_limit_mb; `performance` of greet_v1 allows 1 MiB of inputs and answers"
    assert said in done.stderr


@pytest.mark.parametrize(
    "limit, said",
    [
        ("timeout_seconds", "; `performance` of payment_handler_v1 allows 120 s"),
        ("max_body", "; its outputs exceed `max_body` under [journal]"),
        ("cancelled", ""),
    ],
)
def test_every_limit_of_a_run_has_its_words(limit: str, said: str) -> None:
    node = compiled(REPOSITORY / "nodes" / "payments" / "payment_handler_v1.vsp")
    assert outcome_lines(node, LimitHit(limit), {}) == f"error: limit hit: {limit}{said}"


@pytest.mark.parametrize(
    "effect_class, said",
    [
        ("read", "interrupted before anything was changed"),
        ("keyed", "has begun and may have performed effects. Do not start it again: `vesper journal recover` finishes"),
    ],
)
def test_somebody_who_interrupts_a_run_is_told_what_is_left_of_it(folder: Path, effect_class: str, said: str) -> None:
    name = f"interrupted_{effect_class}"
    settings(folder)
    text = NODE.replace("greeting_of_the_day", name).replace("effect: read", f"effect: {effect_class}")
    (folder / "nodes" / "greet_v1.vsp").write_text(text, encoding="utf-8")

    @effect(name, effect_class=effect_class)
    def stopped(name: str) -> str:
        raise KeyboardInterrupt

    try:
        done = invoke("run", "greet", "-i", "event_id=e", "-i", "name=ann")
        assert done.exit_code == 1
        assert said in done.stderr
        listed = json.loads(invoke("journal", "list", "--format", "json").stdout)
        assert [each["status"] for each in listed] == ([] if effect_class == "read" else ["running"])
    finally:
        unregister(name)
