"""Reads the General Decimal Arithmetic cases (`*.decTest`), which come with CPython's own test suite.

In: a folder of such files. Out: cases with the settings that stood above them. Numbers are read here as integers, and
nothing uses Python's `decimal`: the kernels do, and a mistake in it must not hide itself.
"""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\S+""")
_DIRECTIVE = re.compile(r"\s*([a-z]+)\s*:\s*(\S+)", re.IGNORECASE)
_NUMBER = re.compile(r"([+-]?)([0-9]+(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]+))?")


class CasesMissing(Exception):
    """There are no .decTest files; the message says where they were looked for and how to get them."""


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number: coefficient × 10^exponent. Zero has no sign here, as in Vesper."""

    coefficient: int
    exponent: int

    @property
    def digits(self) -> int:
        return len(str(abs(self.coefficient)))


@dataclass(frozen=True, slots=True)
class Settings:
    """What the directives above a case say, as far as it matters for finite numbers."""

    precision: int = 9
    rounding: str = "half_up"


@dataclass(frozen=True, slots=True)
class Case:
    file: str
    id: str
    operation: str
    operands: tuple[str, ...]
    result: str
    conditions: frozenset[str]
    settings: Settings

    @property
    def is_rounded(self) -> bool:
        """Digits were dropped, at least zeros."""
        return "rounded" in self.conditions

    @property
    def is_inexact(self) -> bool:
        """Digits were dropped that were not all zeros."""
        return "inexact" in self.conditions


def case_folder() -> Path:
    """The folder with the files of this interpreter, or of Debian's package for another one: they are the same."""
    tried = [Path(sysconfig.get_path("stdlib")) / "test" / "decimaltestdata"]
    tried += sorted(Path("/usr/lib").glob("python3*/test/decimaltestdata"))
    for folder in tried:
        if any(folder.glob("*.decTest")):
            return folder
    raise CasesMissing(
        f"no *.decTest files in {tried[0]}, nor under /usr/lib: they are part of CPython's test suite "
        "(Debian: apt-get install libpython3-testsuite)"
    )


def read_cases(folder: Path) -> Iterator[Case]:
    for path in sorted(folder.glob("*.decTest")):
        yield from read_file(path.name, path.read_text(encoding="utf-8"))


def read_file(name: str, text: str) -> Iterator[Case]:
    settings = Settings()
    for line in text.splitlines():
        directive = _DIRECTIVE.match(line)
        tokens = _tokens(line)
        if "->" in tokens:
            yield _case(name, tokens, settings)
        elif directive is not None and tokens:
            settings = _changed(settings, directive[1].lower(), directive[2].lower())
        elif tokens:
            raise ValueError(f"{name}: neither a case nor a directive: {line}")


def _tokens(line: str) -> list[str]:
    """The words of a line up to a comment, which begins with `--`."""
    found: list[str] = []
    for match in _TOKEN.finditer(line):
        if match[0].startswith("--"):
            break
        found.append(match[0])
    return found


def _changed(settings: Settings, name: str, value: str) -> Settings:
    match name:
        case "precision":
            return Settings(int(value), settings.rounding)
        case "rounding":
            return Settings(settings.precision, value)
        case "extended" if value != "1":
            raise ValueError(f"extended: {value} is another arithmetic, for which nothing here is written")
        case "extended" | "maxexponent" | "minexponent" | "clamp" | "version" | "dectest":
            # The exponent range shows in the conditions of a case; `dectest` includes files that are read anyway.
            return settings
        case _:
            raise ValueError(f"an unknown directive: {name}")


def _case(file: str, tokens: list[str], settings: Settings) -> Case:
    arrow = tokens.index("->")
    operands = tuple(_unquoted(token) for token in tokens[2:arrow])
    result, *conditions = tokens[arrow + 1 :]
    flags = frozenset(each.lower() for each in conditions)
    return Case(file, tokens[0], tokens[1].lower(), operands, _unquoted(result), flags, settings)


def _unquoted(token: str) -> str:
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote) if len(token) > 1 and quote in "'\"" else token


def number(text: str) -> Number | None:
    """The finite number that a text spells, or None."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    sign, _, fraction, only_fraction, exponent = match.groups()
    places = len(fraction or only_fraction or "")
    coefficient = int(match[2].replace(".", ""))
    return Number(-coefficient if sign == "-" else coefficient, int(exponent or 0) - places)
