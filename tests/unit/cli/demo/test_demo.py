"""`vesper demo`, as a whole and in a process of its own, and as its page shows it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.console import ROOT, check_printed, parse_session
from vesper.cli.demo.provider import Provider
from vesper.cli.demo.scaled import REAL, SCALED
from vesper.cli.demo.shop import DECISION, faulty_text, make_shop
from vesper.compiler import compile_file, compile_source
from vesper.language.diagnostics.source import SourceFile
from vesper.migration.control.modes import THRESHOLDS

_WAIT_SECONDS = 60
_END_SECONDS = 300


def test_the_story_is_told_to_its_end(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "vesper", "demo", "--no-watch", "--seconds", str(_WAIT_SECONDS)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=_END_SECONDS, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    page = (ROOT / "docs" / "how-to" / "try-the-demo.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```console demo\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (session,) = parse_session(block)
    check_printed(session, done.stdout, done.returncode)
    assert not list(tmp_path.glob("vesper-*")), "it leaves nothing behind"


def test_its_nodes_are_right_and_the_fault_changes_the_meaning_alone(tmp_path: Path) -> None:
    make_shop(tmp_path, "http://127.0.0.1:9")
    compiled = {}
    for path in sorted((tmp_path / "nodes").iterdir()):
        found, bag = compile_file(path)
        assert found is not None, bag.sorted()
        assert not bag.sorted()
        compiled[path.stem] = found
    faulty, _ = compile_source(SourceFile("faulty.vsp", faulty_text()))
    assert faulty is not None
    assert faulty.semantic_hash != compiled[DECISION].semantic_hash


def test_only_its_own_processes_have_other_thresholds() -> None:
    assert REAL == THRESHOLDS
    assert all(scaled <= REAL[mode] for mode, scaled in SCALED.items())


def test_the_provider_charges_once_for_each_key() -> None:
    with Provider() as provider:
        assert [provider._charge(key)[1] for key in ("a", "b", "a")] == [
            {"id": "ch_1", "status": "succeeded"},
            {"id": "ch_2", "status": "succeeded"},
            {"id": "ch_1", "status": "succeeded"},
        ]
        assert provider._charge(None)[0] == 400
        assert (provider.charges_made, dict(provider.requests)) == (2, {"a": 2, "b": 1})
