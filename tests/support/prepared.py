"""A server that runs `vesper` commands in forks of a warm process.

Run it with `python -m tests.support.prepared`. Each request is a line of JSON with arguments and folder. A fork starts
like a new process, without leftovers of other commands; `tests/unit/cli/test_output.py` and others test real processes.
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
from functools import cache
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]
_SECONDS = 120
_IMPORTED = ("libcst.matchers", "vesper.cli.main", "vesper.compiler.generated", "vesper.engines.direct_engine", "yaml")


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
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps([arguments, str(folder)]) + "\n")
    server.stdin.flush()
    line = server.stdout.readline()
    assert line, f"no command can be run any more: the process for them ended with {server.wait()}"
    text, code = json.loads(line)
    return str(text), int(code)


def _answer(arguments: list[str], folder: str) -> tuple[str, int]:
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            _become(arguments, folder, output)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        return output.read().decode("utf-8", "replace").replace("\r\n", "\n"), os.waitstatus_to_exitcode(status)


def _become(arguments: list[str], folder: str, output: IO[bytes]) -> None:
    """Turn the forked process into `python -m vesper` in that folder, until it exits."""
    import signal

    from vesper.cli.main import main

    code = 1
    try:
        signal.alarm(_SECONDS)  # a hanging command would block all tests
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
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
        arguments, folder = json.loads(line)
        print(json.dumps(_answer(arguments, folder)), flush=True)


if __name__ == "__main__":
    serve()
