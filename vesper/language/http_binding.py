"""The request that an `http_handler` answers: method, path, and the source of each input.

It is not part of the semantics: neither the IR nor the semantic hash contains it. docs/spec/http.md defines the
meaning.
"""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass
from typing import Any

_HOLE = re.compile(r"\{([^{}]*)\}")


def route_of(method: str, path: str) -> str:
    """Return a method and a path without the names of holes."""
    return f"{method} {_HOLE.sub('{}', path)}"


@dataclass(frozen=True, slots=True)
class HttpInput:
    """The source of one input."""

    name: str
    """Name in the node."""
    field: str
    """Name in the JSON object of `run_json`: the outside name."""
    source: str
    """`path`, `query`, `header` or `body`."""
    key: str
    """Hole of the path, query parameter, header, or field of the body."""
    form: str
    """Form of the parameter in JSON; of an input from the body `json`.

    `text` is a JSON string. `bare` is the text itself where that is a JSON number, `true` or `false`, and otherwise a
    string, which the node accepts (`NaN`) or reports. `array_text` and `array_bare` are arrays of those, one item for
    each occurrence.
    """


@dataclass(frozen=True, slots=True)
class HttpBinding:
    """The field `http` of a checked node."""

    method: str
    path: str
    """Template: a segment in braces is the name of an input."""
    inputs: tuple[HttpInput, ...]
    """In declared order, without flags (`absent`)."""
    body: str
    """`object`, `none`, or the name of the input that is the whole body."""
    status: int
    errors: tuple[tuple[str, int], ...]
    """Status by `error_code`; the others have 422."""
    response_headers: tuple[tuple[str, str], ...]
    """Templates by name; a name in braces is an output by its outside name."""
    scopes: tuple[str, ...]

    @property
    def route(self) -> str:
        """Method and path without the names of holes, by which a server distinguishes requests."""
        return route_of(self.method, self.path)

    def to_data(self) -> tuple[Any, ...]:
        """Return plain data, which `marshal` can write."""
        return astuple(self)

    @classmethod
    def from_data(cls, data: tuple[Any, ...]) -> HttpBinding:
        """Return the binding of plain data."""
        method, path, inputs, *rest = data
        return cls(method, path, tuple(HttpInput(*each) for each in inputs), *rest)
