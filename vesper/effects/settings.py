"""Reader of one table of `vesper.toml`.

Each setting has a type, unknown settings are refused, and each error names its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, TypeVar

from vesper.language.diagnostics.suggest import did_you_mean, suggestions
from vesper.values.vesper_error import VesperError

_Kind = TypeVar("_Kind")
_UNSET: Any = object()
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(us|ms|s|m|h|d)")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = re.compile(r"([0-9]+) ?(B|KiB|MiB|GiB)")
_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class ConfigError(VesperError):
    """A setting that cannot be used; the message names the file and the setting."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(f"{where}: {message}")
        self.where = where


class Table:
    """A table of the configuration. Its reader calls `done` at the end, which refuses settings that were not read."""

    def __init__(self, where: str, values: Mapping[str, object]) -> None:
        self.where = where
        self._values = values
        self._asked: set[str] = set()
        self._looked_for: set[str] = set()
        """Settings that are read only where they stand there: for hints."""

    def __contains__(self, name: str) -> bool:
        self._looked_for.add(name)
        return name in self._values

    def names(self) -> list[str]:
        return list(self._values)

    def values(self) -> Mapping[str, object]:
        """Return all settings as they were given."""
        return self._values

    def value(self, name: str) -> object:
        """Return a setting of any kind."""
        self._asked.add(name)
        return self._values[name]

    def text(self, name: str, default: str = _UNSET, expected: str = "a text") -> str:
        return self._of(name, str, expected, default)

    def day(self, name: str) -> date:
        """Read a day: a text, or a date of TOML."""
        expected = "a day such as 2027-01-31"
        if type(self._values.get(name)) is date:
            return self._of(name, date, expected, _UNSET)
        text = self.text(name, expected=expected)
        try:
            return date.fromisoformat(text)
        except ValueError:
            raise self.error(name, f"{expected} is expected, not `{text}`") from None

    def integer(self, name: str, default: int = _UNSET, least: int = 0, most: int = 1 << 53) -> int:
        value = self._of(name, int, "a whole number", default)
        if name in self._values and not least <= value <= most:
            raise self.error(name, f"a number from {least:,} to {most:,} is expected, not {value:,}")
        return value

    def boolean(self, name: str, default: bool = _UNSET) -> bool:
        return self._of(name, bool, "true or false", default)

    def seconds(self, name: str, default: float = _UNSET) -> float:
        """Read a duration such as `30s`, `200ms`, `24h`, `7d`."""
        if name not in self._values and default is not _UNSET:
            self._asked.add(name)
            return default
        text = self._of(name, str, "a duration such as `30s`", _UNSET)
        found = _DURATION.fullmatch(text)
        if found is None:
            raise self.error(name, f"a duration such as `200ms`, `30s`, `24h` or `7d` is expected, not `{text}`")
        return float(found[1]) * _SECONDS[found[2]]

    def size(self, name: str, default: int = _UNSET) -> int:
        """Read a number of bytes such as `64 KiB`."""
        if name not in self._values and default is not _UNSET:
            self._asked.add(name)
            return default
        text = self._of(name, str, "a size such as `1 MiB`", _UNSET)
        found = _SIZE.fullmatch(text)
        if found is None:
            raise self.error(name, f"a size such as `512 B`, `64 KiB` or `1 MiB` is expected, not `{text}`")
        return int(found[1]) * _BYTES[found[2]]

    def texts(self, name: str, default: tuple[str, ...] = _UNSET) -> tuple[str, ...]:
        found = self._of(name, list, "a list of texts", default)
        if not all(isinstance(each, str) for each in found):
            raise self.error(name, "a list of texts is expected")
        return tuple(found)

    def choice(self, name: str, among: tuple[str, ...], default: str = _UNSET) -> str:
        found = self.text(name, default)
        if found not in among:
            raise self.error(name, f"one of {', '.join(among)} is expected, not `{found}`" + close_to(found, among))
        return found

    def table(self, name: str) -> Table:
        """Read the table of this name; an empty one if there is none."""
        return Table(f"{self.where}.{name}", self._of(name, dict, "a table", {}))

    def list_of_tables(self, name: str) -> list[Table]:
        """Return the tables of `[[name]]`, in their order."""
        found = self._of(name, list, f"a list of tables: `[[{self.where.removeprefix('settings.')}.{name}]]`", [])
        if not all(isinstance(each, dict) for each in found):
            raise self.error(name, "a list of tables is expected")
        return [Table(f"{self.where}.{name}[{n}]", each) for n, each in enumerate(found)]

    def tables(self) -> dict[str, Table]:
        """Return all values as tables by name, such as `[providers.stripe]` and `[providers.paypal]`."""
        return {name: self.table(name) for name in self._values}

    def done(self) -> None:
        """Refuse settings that were not read."""
        for name in self._values:
            if name not in self._asked:
                known = sorted(self._asked | self._looked_for)
                raise ConfigError(f"{self.where}.{name}", "no such setting" + close_to(name, known))

    def error(self, name: str, message: str) -> ConfigError:
        return ConfigError(f"{self.where}.{name}", message)

    def _of(self, name: str, kind: type[_Kind], expected: str, default: Any) -> _Kind:
        self._asked.add(name)
        if name not in self._values:
            if default is _UNSET:
                # A setting that was not read yet may be valid all the same: the hint is a question.
                slips = suggestions(name, [each for each in self._values if each not in self._asked])
                hint = f"; is it meant by `{slips[0]}`?" if slips else ""
                raise ConfigError(self.where, f"`{name}` is missing: {expected}{hint}")
            found: _Kind = default
            return found
        value = self._values[name]
        if type(value) is not kind:  # a boolean is no whole number
            raise self.error(name, f"{expected} is expected, not {value!r}")
        return value


def close_to(name: str, among: tuple[str, ...] | list[str]) -> str:
    """Return a hint at a name similar to an unknown one, for the end of a message. Empty without one."""
    close = did_you_mean(name, among)
    return f"; {close}" if close else ""
