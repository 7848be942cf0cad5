"""Runs allowed commands: an argument vector in a confined process, with bounded time and output."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from time import monotonic
from typing import Final

from vesper.effects.commands.settings import CommandSettings
from vesper.effects.performer import NOT_DONE, Ask, EffectFailed
from vesper.values.model import plain

_CHUNK_BYTES: Final = 64 << 10
MAX_STDIN_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class _Result:
    exit_code: int
    stdout: bytes
    stderr: bytes
    is_truncated: bool
    problem: str
    """Reason why the confinement failed; empty where the command began."""


class CommandPerformer:
    """Performs `command_run`."""

    def __init__(self, commands: Mapping[str, CommandSettings]) -> None:
        self._commands = commands

    def perform(self, ask: Ask) -> object:
        settings = self._commands.get(ask.fixed["command"])
        if settings is None:
            known = f"no `[commands.{ask.fixed['command']}]` is configured"
            raise EffectFailed("unavailable", f"{known}: add it to vesper.toml")
        arguments = _arguments(ask)
        problem = settings.problem(arguments)
        if problem is not None:
            raise EffectFailed("not_allowed", f"`{settings.name}` was not run: {problem}")
        stdin = ask.arguments.get("stdin")
        if stdin is not None and not settings.takes_stdin:
            message = f"`{settings.name}` was not run: it takes no standard input; set `stdin = true` to allow it"
            raise EffectFailed("not_allowed", message)
        data = b"" if stdin is None else str(stdin).encode("utf-8", "surrogatepass")
        if len(data) > MAX_STDIN_BYTES:
            raise EffectFailed("invalid_argument", f"the standard input has more than {MAX_STDIN_BYTES:,} bytes")
        timeout = settings.timeout if ask.timeout is None else min(settings.timeout, ask.timeout)
        with _folder(settings) as folder:
            result = _run(settings, [settings.program, *arguments], folder, data, timeout)
        if result.problem:
            raise EffectFailed("unavailable", f"`{settings.name}` was not run: its sandbox failed: {result.problem}")
        return {
            "exit_code": result.exit_code,
            "stdout": result.stdout.decode("utf-8", "replace"),
            "stderr": result.stderr.decode("utf-8", "replace"),
            "is_truncated": result.is_truncated,
        }

    def probe(self, ask: Ask) -> object:
        """Return `NOT_DONE`: commands are never of class `probe`."""
        return NOT_DONE

    def close(self) -> None:
        """Do nothing: no resources are open between two commands."""


def _arguments(ask: Ask) -> list[str]:
    given = plain(ask.arguments.get("arguments"))
    if given is None:
        return []
    texts = [each for each in given if isinstance(each, str)] if isinstance(given, list) else []
    if not isinstance(given, list) or len(texts) != len(given):
        raise EffectFailed("invalid_argument", "`arguments` of a command is a list of texts")
    if any("\0" in each for each in texts):
        raise EffectFailed("not_allowed", "an argument has a null character")
    return texts


@contextlib.contextmanager
def _folder(settings: CommandSettings) -> Iterator[str]:
    if settings.folder is not None:
        yield str(settings.folder)
        return
    with tempfile.TemporaryDirectory(prefix="vesper-command-", ignore_cleanup_errors=True) as folder:
        yield os.path.realpath(folder)


def _run(settings: CommandSettings, argv: list[str], folder: str, stdin: bytes, timeout: float) -> _Result:
    """Run a command to its end. Raises `EffectFailed` if it exceeds its time."""
    reading, report = os.pipe()
    confined = settings.confinement.command(argv, folder, report, ceil(timeout) + 1)
    try:
        process = subprocess.Popen(  # the program is configured, and its arguments were matched
            confined,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(report,),
            env={},
            cwd=folder,
            start_new_session=True,
        )
    except OSError as error:
        os.close(reading)
        raise EffectFailed("unavailable", f"`{settings.name}` was not run: {error.strerror}") from None
    finally:
        os.close(report)
    try:
        with process:
            return _exchange(process, reading, stdin, settings.max_output, timeout)
    except TimeoutError:
        message = f"`{settings.name}` took longer than {timeout:g} s and was killed"
        raise EffectFailed("timeout", message, may_have_happened=True) from None
    finally:
        os.close(reading)


def _exchange(process: subprocess.Popen[bytes], report: int, stdin: bytes, most: int, timeout: float) -> _Result:
    """Feed and read a process until its pipes are closed. Output beyond `most` bytes is dropped."""
    assert process.stdin and process.stdout and process.stderr
    end = monotonic() + timeout
    kept: dict[int, bytearray] = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    kept[report] = bytearray()
    is_truncated = False
    rest = memoryview(stdin)
    with selectors.DefaultSelector() as selector:
        for each in kept:
            selector.register(each, selectors.EVENT_READ)
        os.set_blocking(process.stdin.fileno(), False)
        selector.register(process.stdin, selectors.EVENT_WRITE)
        try:
            while selector.get_map():
                left = end - monotonic()
                if left <= 0:
                    raise TimeoutError
                for key, events in selector.select(left):
                    if events & selectors.EVENT_WRITE:
                        rest = _write(process.stdin, rest)
                        if not rest:
                            selector.unregister(process.stdin)
                            with contextlib.suppress(BrokenPipeError):
                                process.stdin.close()
                        continue
                    chunk = os.read(key.fd, _CHUNK_BYTES)
                    if not chunk:
                        selector.unregister(key.fd)
                    room = most - len(kept[key.fd])
                    kept[key.fd] += chunk[:room]
                    is_truncated |= len(chunk) > room
            exit_code = process.wait(max(end - monotonic(), 0.001))
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            _kill(process)
    stdout, stderr, problem = kept.values()
    code = exit_code if exit_code >= 0 else 128 - exit_code
    return _Result(code, bytes(stdout), bytes(stderr), is_truncated, problem.decode("utf-8", "replace"))


def _write(pipe: object, rest: memoryview) -> memoryview:
    try:
        return rest[os.write(pipe.fileno(), rest[:_CHUNK_BYTES]) :] if rest else rest  # type: ignore[attr-defined]
    except BrokenPipeError:  # the command reads no more of it
        return rest[:0]
    except BlockingIOError:
        return rest


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its descendants: the sandbox does not let them leave their process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
