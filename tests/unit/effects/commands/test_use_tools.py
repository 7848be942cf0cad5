"""docs/how-to/use-tools.md: its settings are read as they are written, and its hook blocks what it says."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from vesper.config.settings import config_from
from vesper.effects.hooks.registry import HOOKS, Block, Call, remove_hook

PAGE = (Path(__file__).parents[4] / "docs" / "how-to" / "use-tools.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(toml|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(found[1], found[2]) for found in _BLOCK.finditer(PAGE)]


@pytest.mark.parametrize("text", [text for language, text in BLOCKS if language == "toml"])
def test_settings_are_read(text: str, tmp_path: Path) -> None:
    for name in ("repository", "notes"):
        (tmp_path / name).mkdir()
    here = re.sub(r'"/usr/[^"]+"', f'"{sys.executable}"', text.replace("sha256:…", f"sha256:{'0' * 64}"))
    settings = config_from(tomllib.loads(here), tmp_path)
    assert settings.parts.commands or settings.parts.mcp or settings.tool_rules


def test_the_hook_blocks() -> None:
    [text] = [text for language, text in BLOCKS if language == "python"]
    names: dict[str, object] = {}
    exec(compile(text, "use-tools.md", "exec"), names)
    hook = names["never_by_force"]
    assert callable(hook)
    try:
        [registered] = HOOKS.before(("exec.shell_command.git_push",))
        for arguments, expected in ((["push"], None), (["push", "--force"], Block("never by force"))):
            call = Call((), "command_run", {}, {"arguments": arguments}, "run", "step", is_sensitive=False)
            assert registered(call) == expected
    finally:
        remove_hook(hook)
