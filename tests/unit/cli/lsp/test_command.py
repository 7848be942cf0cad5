"""`vesper lsp`: without its packages, and as a process."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from vesper.cli.main import vesper

PACKAGE = Path(importlib.util.find_spec("vesper").origin or "").parent  # type: ignore[union-attr]  # it is installed


def test_a_missing_package_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    done = CliRunner().invoke(vesper, ["lsp"])
    assert done.exit_code == 1
    assert done.output == "Error: the language server needs pygls: run `pip install 'vesper[lsp]'`\n"


def test_only_the_language_server_imports_its_packages() -> None:
    imports = re.compile(r"^\s*(?:from|import) (?:pygls|lsprotocol|vesper\.lsp)\b", re.MULTILINE)
    users = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if imports.search(path.read_text("utf-8"))}
    # The tools of `vesper mcp --author` read the reference of the language, which needs no package.
    allowed = ("lsp/", "dashboard/play/", "mcp/author/")
    outside = {path for path in users if not path.as_posix().startswith(allowed)}
    assert outside == {Path("cli", "lsp", "command.py")}


def test_the_command_serves_standard_input_and_output(tmp_path: Path) -> None:
    def message(**fields: object) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", **fields}).encode()
        return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

    asked = [
        message(
            id=1, method="initialize", params={"processId": None, "rootUri": tmp_path.as_uri(), "capabilities": {}}
        ),
        message(method="initialized", params={}),
        message(id=2, method="shutdown"),
        message(method="exit"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "vesper", "lsp"], input=b"".join(asked), capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    assert head.startswith(b"Content-Length: ")
    assert b'"positionEncoding": "utf-16"' in body
