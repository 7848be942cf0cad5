"""A server that runs `vesper` commands in forks of a warm process.

Run it with `python -m tests.support.prepared`. Each request is a line of JSON with arguments, folder and environment. A
fork starts like a new process, without leftovers of other commands; `tests/unit/cli/test_output.py` and others test
real processes.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]
_SECONDS = 600
_IMPORTED = (
    "concurrent.futures.thread",
    "libcst.matchers",
    "sqlglot.dialects.sqlite",
    "sqlite3",
    "vesper.cli.main",
    "vesper.cli.run.hosted",
    "vesper.compiler.generated",
    "vesper.config.settings",
    "vesper.engines.direct_engine",
    "vesper.host.performers",
    "vesper.journal.store_journal",
    "vesper.replay.rerun",
    "yaml",
)


@cache
def _server() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.prepared"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(started.kill)
    return started


def vesper(arguments: list[str], folder: Path) -> tuple[str, int]:
    """Return the outputs and exit code of `vesper` with these arguments in a folder."""
    printed, _, code = _request(arguments, folder, None, join_outputs=True)
    return printed, code


def completed(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run `vesper` in a folder with exactly this environment; return its outputs and its exit code."""
    output, errors, code = _request(list(arguments), folder, dict(environment), join_outputs=False)
    return subprocess.CompletedProcess(["vesper", *arguments], code, output, errors)


def _request(
    arguments: list[str], folder: Path, environment: dict[str, str] | None, *, join_outputs: bool
) -> tuple[str, str, int]:
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps([arguments, str(folder), environment, join_outputs]) + "\n")
    server.stdin.flush()
    line = server.stdout.readline()
    assert line, f"no command can be run any more: the process for them ended with {server.wait()}"
    output, errors, code = json.loads(line)
    return str(output), str(errors), int(code)


def _answer(
    arguments: list[str], folder: str, environment: dict[str, str] | None, join_outputs: bool
) -> tuple[str, str, int]:
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            if environment is not None:
                os.environ.clear()
                os.environ.update(environment)
            _become(arguments, folder, output, output if join_outputs else errors)
        _, status = os.waitpid(child, 0)
        return _read_output(output), _read_output(errors), os.waitstatus_to_exitcode(status)


def _read_output(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace").replace("\r\n", "\n")


def _become(arguments: list[str], folder: str, output: IO[bytes], errors: IO[bytes]) -> None:
    """Turn the forked process into `python -m vesper` in that folder, until it exits."""
    import signal

    from vesper.cli.main import main

    code = 1
    try:
        signal.alarm(_SECONDS)  # a hanging command would block all tests
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        sys.path[0] = folder
        sys.argv = ["vesper", *arguments]
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001  # what Python itself would print
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def serve() -> None:
    for name in _IMPORTED:
        importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(_answer(*json.loads(line))), flush=True)


if __name__ == "__main__":
    serve()
