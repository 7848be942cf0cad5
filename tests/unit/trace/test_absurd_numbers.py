"""Traces with absurd numbers anywhere: every command answers with an error or a result, never with a fault."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from vesper.cli.main import vesper as cli
from vesper.journal.typed_json import decode, encode
from vesper.trace.model import Trace, TraceError

ABSURD = (2**63, 10**30, -1)
GOLDEN = Path(__file__).parent / "goldens" / "format_1_effects.json"


def places(form: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every whole number of a document, and of every null, which may stand for one."""
    match form:
        case bool():
            return
        case int() | None:
            yield path
        case dict():
            for name, each in form.items():
                yield from places(each, (*path, name))
        case list():
            for number, each in enumerate(form):
                yield from places(each, (*path, number))


def with_number(body: Any, path: tuple[Any, ...], number: int) -> Any:
    if not path:
        return number
    changed = body.copy()
    changed[path[0]] = with_number(body[path[0]], path[1:], number)
    return changed


def sealed(document: dict[str, Any], body: Any) -> bytes:
    return encode({**document, "trace": body, "sha256": hashlib.sha256(encode(body)).hexdigest()}) + b"\n"


@pytest.fixture
def document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.json").write_bytes(GOLDEN.read_bytes())
    found = decode(GOLDEN.read_bytes().rstrip(b"\n"))
    assert isinstance(found, dict)
    return found


COMMANDS = [
    ["traces", "show", "bad.json"],
    ["traces", "show", "bad.json", "--format", "json"],
    ["traces", "diff", "good.json", "bad.json"],
    ["traces", "export", "bad.json", "--format", "otlp"],
    ["traces", "to-test", "bad.json"],
    ["replay", "bad.json"],
    ["debug", "--trace", "bad.json", "-x", "next"],
]


def test_a_moment_beyond_all_calendars_is_an_error(document: dict[str, Any]) -> None:
    for number in ABSURD:
        data = sealed(document, {**document["trace"], "started_us": number})
        with pytest.raises(TraceError, match="is malformed"):
            Trace.from_bytes(data)
        Path("bad.json").write_bytes(data)
        for command in COMMANDS:
            done = CliRunner().invoke(cli, command)
            assert done.exit_code in (1, 2), (command, done.output)
            assert "bad.json is malformed" in done.output, command


def test_no_number_of_a_trace_is_a_fault(document: dict[str, Any]) -> None:
    tried = 0
    for path in places(document["trace"]):
        for number in ABSURD:
            Path("bad.json").write_bytes(sealed(document, with_number(document["trace"], path, number)))
            # Two commands for each number, in turn: all read a trace by the same function.
            for command in (COMMANDS[tried % len(COMMANDS)], COMMANDS[(tried + 1) % len(COMMANDS)]):
                done = CliRunner().invoke(cli, command)
                assert done.exception is None or isinstance(done.exception, SystemExit), (path, number, command)
                is_other = done.exit_code == 3 and command[0] == "replay" and " differs: " in done.output
                assert done.exit_code in (0, 1, 2) or is_other, (path, number, command, done.output)
                tried += 1
    assert tried > 100
