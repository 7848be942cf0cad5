"""Places in the JSON text of refused inputs, for messages.

The text is tokenized again only after a refusal; it is known to be JSON.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from vesper.values.json_mistake import TextPlace
from vesper.values.model import printable
from vesper.values.problem import ProblemKind
from vesper.values.strict_json import JSON_TOKEN

_MAX_LENGTH = 60


class Mistake(NamedTuple):
    """The reason why a text is no JSON. An exception in its place would keep its frames alive."""

    offset: int
    what: str
    kind: ProblemKind = ProblemKind.MALFORMED


class Step(NamedTuple):
    """A part of a path: a name, a position, or the key of a map as a path writes it."""

    text: str
    is_key: bool = False


@dataclass(slots=True)
class JsonValue:
    """A value of the text: its place, its first token, and its members."""

    offset: int
    token: str
    name_offset: int | None = None
    """Offset of the name of an entry."""
    inner: dict[str, JsonValue] = field(default_factory=dict)
    """By name, or by position."""
    _by_key: dict[str, JsonValue] | None = None

    def step(self, step: Step) -> JsonValue | None:
        """Return the member at this step."""
        if not step.is_key:
            return self.inner.get(step.text)
        if self.token == "{":
            return self.inner.get(json.loads(step.text) if step.text.startswith('"') else step.text)
        if self._by_key is None:
            # A map whose keys are no strings: an array of pairs.
            pairs = [each.inner for each in self.inner.values() if len(each.inner) == 2]
            self._by_key = {_bare(pair["0"].token): pair["1"] for pair in pairs if "0" in pair}
        return self._by_key.get(step.text)

    def __str__(self) -> str:
        """Return the value for a message; a long one is cut."""
        match self.token[0]:
            case "{":
                return "an object"
            case "[":
                return "an array"
            case "t" | "f" | "n":
                return self.token
        kind = "string" if self.token.startswith('"') else "number"
        cut = self.token if len(self.token) <= _MAX_LENGTH else self.token[: _MAX_LENGTH - 1] + "…"
        return f"{kind} {printable(cut)}"


class JsonSource:
    """A JSON text, or bytes given as one."""

    def __init__(self, text: str, mistake: Mistake | None = None) -> None:
        self.mistake = mistake
        """Why it is no JSON."""
        self._text = text
        self._line_ends: list[int] | None = None
        self._whole: JsonValue | None = None

    def place(self, offset: int) -> TextPlace:
        """Return line and column. One text may have a million problems, so the lines are counted once."""
        if self._line_ends is None:
            self._line_ends = [each.start() for each in re.finditer("\n", self._text)]
        line = bisect_left(self._line_ends, offset)
        return TextPlace(line + 1, offset - (self._line_ends[line - 1] + 1 if line else 0) + 1)

    def find(self, steps: Sequence[Step]) -> tuple[JsonValue, bool]:
        """Return the value at these steps, or the last existing one before it.

        The flag states whether it is the value itself.
        """
        if self._whole is None:
            self._whole = _spots(self._text)
        spot = self._whole
        for step in steps:
            inner = spot.step(step)
            if inner is None:
                return spot, False
            spot = inner
        return spot, True


class TableRow:
    """Marker of inputs that are a row of a table, by the names of its columns."""


InputSource: TypeAlias = JsonSource | TableRow | None
"""Where inputs came from: JSON text, a row, or objects."""


def _bare(token: str) -> str:
    return str(json.loads(token)) if token.startswith('"') else token


def _spots(text: str) -> JsonValue:
    """Return all values of a JSON text, without recursion."""
    top = JsonValue(0, "[")
    open_ones = [top]
    name: tuple[str, int] | None = None
    for match in JSON_TOKEN.finditer(text):
        token = match[0]
        around = open_ones[-1]
        if token in ("]", "}"):
            open_ones.pop()
        elif token in (":", ","):
            continue
        elif around.token == "{" and name is None:
            name = (json.loads(token) if "\\" in token else token[1:-1], match.start())
        else:
            spot = JsonValue(match.start(), token, None if name is None else name[1])
            around.inner[str(len(around.inner)) if name is None else name[0]] = spot
            name = None
            if token in ("[", "{"):
                open_ones.append(spot)
    return top.inner["0"]
