"""Pages: a dataclass read from the stores, shown as HTML and as JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar
from urllib.parse import quote, urlencode

from starlette.requests import Request

from vesper.config.moments import parse_moment
from vesper.dashboard.access.caller import Caller
from vesper.dashboard.problem import BadRequest, NotFound, Unavailable
from vesper.dashboard.stores import Stores, Topic
from vesper.values.model import printable

M = TypeVar("M")
MAX_PAGE_NUMBER = 1_000_000
_MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class Paging:
    """Position in a list, with the addresses of its neighbours."""

    number: int
    previous: str | None
    next: str | None
    total: int | None = None
    """Number of rows in all; None where counting is too expensive."""


@dataclass(frozen=True, slots=True)
class Context:
    """One request as a page or an action sees it."""

    stores: Stores
    path: Mapping[str, str]
    """Parameters of the path, unquoted."""
    query: Mapping[str, str]
    caller: Caller
    now_us: int = field(default_factory=lambda: time.time_ns() // 1000)
    csrf: str = field(default="", repr=False)
    """The token of the session, for forms and for scripts."""

    def text(self, name: str, default: str | None = None, most: int = _MAX_TEXT) -> str | None:
        """Return a query parameter; an empty one counts as absent. Raises `BadRequest`."""
        found = self.query.get(name, "").strip()
        if len(found) > most or not found.isprintable():
            raise BadRequest(f"`{name}` is not a text of at most {most} printable characters", "Shorten the filter.")
        return found or default

    def choice(self, name: str, choices: Collection[str], default: str | None = None) -> str | None:
        """Return a query parameter that is one of these. Raises `BadRequest`."""
        found = self.text(name)
        if found is not None and found not in choices:
            raise BadRequest(f"`{name}` is not `{printable(found)}`", f"Use one of {', '.join(choices)}.")
        return found or default

    def integer(self, name: str, default: int, least: int, most: int) -> int:
        """Return a query parameter that is a number. Raises `BadRequest`."""
        found = self.text(name)
        if found is None:
            return default
        if not (found.isascii() and found.isdigit() and least <= int(found) <= most):
            raise BadRequest(f"`{name}` is not `{printable(found)}`", f"Use a number from {least} to {most}.")
        return int(found)

    def moment(self, name: str) -> int | None:
        """Return a query parameter that is a time, or a duration before now. Raises `BadRequest`."""
        found = self.text(name)
        try:
            return None if found is None else parse_moment(found, self.now_us)
        except ValueError as problem:
            raise BadRequest(f"`{name}`: {problem}", "Change the filters of the list.") from None

    def page_number(self) -> int:
        """Return the parameter `page`, from 1."""
        return self.integer("page", 1, 1, MAX_PAGE_NUMBER)

    def paging(self, has_more: bool, total: int | None = None) -> Paging:
        """Return the position in a list by `page`, which keeps the other parameters."""
        number = self.page_number()

        def address(page: int) -> str:
            return "?" + urlencode({**self.query, "page": str(page)})

        return Paging(
            number, address(number - 1) if number > 1 else None, address(number + 1) if has_more else None, total
        )


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter, for the API document."""

    name: str
    kind: Literal["text", "integer", "boolean"]
    description: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page(Generic[M]):
    """A page: GET `path` is HTML, GET `/api` + `path` the JSON of the same dataclass."""

    name: str
    path: str
    """In Starlette's form, such as `/nodes/{node}`."""
    title: str
    """Text of the title; may contain parameters of the path, such as `{node}`."""
    read: Callable[[Context], M]
    """Runs in a thread. A page with topics is shared by its callers: its `read` sees an anonymous viewer."""
    template: str
    summary: str
    topics: frozenset[Topic] = frozenset()
    """What refreshes the page; empty: nothing."""
    menu: str | None = None
    parameters: tuple[Parameter, ...] = ()
    policy: str | None = None
    """A content security policy of its own."""

    def titled(self, path: Mapping[str, str]) -> str:
        return self.title.format_map(path)


def context_of(request: Request) -> Context:
    """Return the context of a request, for raw routes."""
    path = {name: str(value) for name, value in request.path_params.items()}
    query = dict(request.query_params)
    for name, value in (*path.items(), *query.items()):
        if "\0" in value or "\0" in name:
            raise BadRequest("the address contains a NUL character", "Follow a link of a page.")
    return Context(request.app.state.stores, path, query, request.state.caller, csrf=request.state.csrf)


def filled(path: str, parameters: Mapping[str, str]) -> str:
    """Return a path with its parameters quoted in place."""
    return path.format_map({name.partition(":")[0]: quote(value, safe="") for name, value in parameters.items()})


__all__ = [
    "BadRequest", "Caller", "Context", "NotFound", "Page", "Paging", "Parameter", "Stores", "Topic", "Unavailable",
    "context_of", "filled",
]  # fmt: skip
