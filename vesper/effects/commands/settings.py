"""Commands that nodes may run, and the confinement of each."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from vesper.effects.settings import Table
from vesper.kernels.regex import matches
from vesper.values.pattern import PatternProblem
from vesper.values.pattern_parser import parse_pattern

MAX_ARGUMENT_BYTES: Final = 4096
MAX_ARGUMENTS: Final = 256
_SYSTEM_FOLDERS: Final = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom")
_DEVICES: Final = ("/dev/null",)
_NETWORK_FILES: Final = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl")
_ENVIRONMENT: Final = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
_SCRIPT: Final = str(Path(__file__).with_name("confined_exec.py"))
_OPEN_FILES: Final = 256


@dataclass(frozen=True, slots=True)
class Confinement:
    """Files, network and resources that a process may use besides the folders of the system."""

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    has_network: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int = 1 << 30
    file_bytes: int = 64 << 20

    def command(self, argv: Sequence[str], folder: str, report: int, cpu_seconds: int) -> list[str]:
        """Return the argument vector that confines itself and then executes `argv`.

        A failed confinement writes its reason to the descriptor `report`.
        """
        spec = {
            "argv": list(argv),
            "folder": folder,
            "report": report,
            "readable": [*_SYSTEM_FOLDERS, *(_NETWORK_FILES if self.has_network else ()), *self.readable],
            "writable": [folder, *_DEVICES, *self.writable],
            "network": self.has_network,
            "environment": {**_ENVIRONMENT, "HOME": folder, "TMPDIR": folder, **self.environment},
            "limits": {
                "RLIMIT_AS": self.memory_bytes,
                "RLIMIT_FSIZE": self.file_bytes,
                "RLIMIT_NOFILE": _OPEN_FILES,
                "RLIMIT_CORE": 0,
                "RLIMIT_CPU": cpu_seconds,
            },
        }
        return [sys.executable, "-I", "-S", _SCRIPT, json.dumps(spec)]

    @classmethod
    def from_table(cls, table: Table, base: Path | None) -> Confinement:
        """Read `read`, `write`, `network`, `environment`, `memory` and `max_file`."""
        environment = table.table("environment")
        return cls(
            _paths(table, "read", base),
            _paths(table, "write", base),
            table.boolean("network", False),
            {name: environment.text(name) for name in environment.names()},
            table.size("memory", 1 << 30),
            table.size("max_file", 64 << 20),
        )


@dataclass(frozen=True, slots=True)
class ArgumentPattern:
    """One entry of `arguments`: a fixed text, or a pattern of texts."""

    text: str | None
    pattern: str | None = None
    most: int = 1
    """Number of arguments that the last entry may stand for; `least` of them are required."""
    least: int = 1
    is_option: bool = False
    """True: an argument that begins with `-` is allowed."""

    def problem(self, argument: str) -> str | None:
        """Return the reason why this argument is not allowed in this place. None if it is."""
        if self.text is not None:
            return None if argument == self.text else f"`{self.text}` is expected"
        if argument.startswith("-") and not self.is_option:
            return "it begins with `-`, which makes it an option"
        if any(each < " " or each == "\x7f" for each in argument):
            return "it has a control character"
        assert self.pattern is not None
        return None if matches(argument, f"^(?:{self.pattern})$") else f"it does not match `{self.pattern}`"


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """`[commands.NAME]`."""

    name: str
    program: str
    arguments: tuple[ArgumentPattern, ...]
    folder: Path | None
    """Working folder; None is an empty one for each run, which is removed."""
    takes_stdin: bool
    timeout: float
    max_output: int
    """Bytes of output, and of error output, that a result holds."""
    confinement: Confinement

    @classmethod
    def from_table(cls, name: str, table: Table, base: Path | None = None) -> CommandSettings:
        program = table.text("program")
        folder = _paths_of(table, "folder", (table.text("folder"),), base)[0] if "folder" in table else None
        found = cls(
            name,
            program,
            _patterns(table),
            None if folder is None else Path(folder),
            table.boolean("stdin", False),
            table.seconds("timeout", 10.0),
            table.size("max_output", 64 << 10),
            Confinement.from_table(table, base),
        )
        table.done()
        if not Path(program).is_absolute() or not os.access(program, os.X_OK):
            raise table.error("program", f"the absolute path of a program is expected, not `{program}`")
        if found.folder is not None and not found.folder.is_dir():
            raise table.error("folder", f"there is no folder `{found.folder}`")
        if not 0 < found.timeout <= 3600:
            raise table.error("timeout", "a command has more than nothing and at most an hour")
        if not 0 < found.max_output <= 1 << 20:
            raise table.error("max_output", "1 MiB at most, which a result must hold")
        return found

    def problem(self, arguments: Sequence[str]) -> str | None:
        """Return the reason why these arguments are not allowed; None if they are."""
        if len(arguments) > MAX_ARGUMENTS:
            return f"there are more than {MAX_ARGUMENTS} arguments"
        given = list(arguments)
        for entry in self.arguments:
            count = 0
            while given and count < entry.most:
                if len(given[0].encode("utf-8", "surrogatepass")) > MAX_ARGUMENT_BYTES:
                    return f"an argument has more than {MAX_ARGUMENT_BYTES:,} bytes"
                problem = entry.problem(given[0])
                if problem is not None:
                    position = len(arguments) - len(given) + 1
                    return f"argument {position} is not allowed: {problem}"
                given.pop(0)
                count += 1
            if count < entry.least:
                return f"argument {len(arguments) + 1} is missing"
        return f"argument {len(arguments) - len(given) + 1} is one too many" if given else None


def _patterns(table: Table) -> tuple[ArgumentPattern, ...]:
    listed = table.value("arguments") if "arguments" in table else []
    if not isinstance(listed, list):
        raise table.error("arguments", "a list of texts and of `{pattern = …}` is expected")
    found = tuple(_pattern(table, number, each) for number, each in enumerate(listed))
    for number, each in enumerate(found[:-1]):
        if each.most > 1:
            raise table.error("arguments", f"only the last entry may have `most`, not entry {number + 1}")
    return found


def _pattern(table: Table, number: int, entry: object) -> ArgumentPattern:
    if isinstance(entry, str):
        return ArgumentPattern(entry)
    if not isinstance(entry, dict):
        raise table.error("arguments", f"entry {number + 1} is a text or `{{pattern = …}}`, not {entry!r}")
    inner = Table(f"{table.where}.arguments[{number}]", entry)
    pattern = inner.text("pattern")
    try:
        parse_pattern(pattern)
    except PatternProblem as problem:
        raise inner.error("pattern", f"this is no pattern: {problem}") from None
    most = inner.integer("most", 1, least=1, most=MAX_ARGUMENTS)
    found = ArgumentPattern(
        None, pattern, most, inner.integer("least", 1, least=0, most=most), inner.boolean("option", False)
    )
    inner.done()
    return found


def _paths(table: Table, name: str, base: Path | None) -> tuple[str, ...]:
    return _paths_of(table, name, table.texts(name, ()), base)


def _paths_of(table: Table, name: str, paths: Sequence[str], base: Path | None) -> tuple[str, ...]:
    """Return absolute paths with symbolic links resolved, so that later links cannot replace them."""
    found = []
    for text in paths:
        path = Path(text)
        if not path.is_absolute():
            if base is None:
                raise table.error(name, f"an absolute path is expected, not `{text}`")
            path = base / path
        if path.resolve() == Path(path.anchor):
            raise table.error(name, "the root of the file system cannot be given to a command")
        if not path.exists():
            raise table.error(name, f"there is no `{path}`")
        found.append(str(path.resolve()))
    return tuple(found)
