"""`[[tool_rules]]`: which calls of granted tools are performed, need the consent of a person, or are refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from vesper.effects.settings import ConfigError, Table
from vesper.kernels.regex import matches
from vesper.language.diagnostics.capability_words import covers, is_word, nearest_word
from vesper.values.pattern import PatternProblem
from vesper.values.pattern_parser import parse_pattern

Decision = Literal["allow", "ask", "deny"]
ANYWHERE = "**"
"""The path of every text in the arguments."""


@dataclass(frozen=True, slots=True)
class ToolRule:
    """One `[[tool_rules]]`. The first matching rule decides; a call without a matching rule is allowed."""

    tools: tuple[str, ...]
    arguments: tuple[tuple[str, str], ...]
    """Dotted paths in the request and the patterns of their values; all must match."""
    decision: Decision
    where: str

    def applies(self, tools: Iterable[str], request: Mapping[str, object]) -> bool:
        return any(covers(word, tool) for word in self.tools for tool in tools) and all(
            any(matches(text, f"^(?:{pattern})$") for text in _texts(request, path)) for path, pattern in self.arguments
        )


def read_tool_rules(tables: list[Table]) -> tuple[ToolRule, ...]:
    """Read `tools`, `arguments` and `decision` of each rule."""
    return tuple(_rule(table) for table in tables)


def _rule(table: Table) -> ToolRule:
    tools = table.texts("tools")
    decision = table.choice("decision", ("allow", "ask", "deny"))
    arguments = table.table("arguments")
    pairs = tuple((path, arguments.text(path)) for path in arguments.names())
    table.done()
    if not tools:
        raise table.error("tools", "at least one capability is expected; `*` is all")
    for word in tools:
        if not is_word(word, takes_wildcards=True, takes_prefix=False):
            raise table.error("tools", f"`{word}` is no capability; did you mean `{nearest_word(word)}`?")
    for path, pattern in pairs:
        try:
            parse_pattern(pattern)
        except PatternProblem as problem:
            raise ConfigError(f"{arguments.where}.{path}", f"this is no pattern: {problem}") from None
    match decision:
        case "allow" | "ask" | "deny":
            return ToolRule(tools, pairs, decision, table.where.removeprefix("settings."))
        case _:
            raise AssertionError(decision)


def _texts(value: object, path: str) -> Iterator[str]:
    """Yield the values at a dotted path as texts. `**` yields every text and number inside."""
    if path == ANYWHERE:
        yield from _all_texts(value)
        return
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return
    yield value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def _all_texts(value: object) -> Iterator[str]:
    match value:
        case Mapping():
            for key, each in value.items():
                yield str(key)
                yield from _all_texts(each)
        case list() | tuple() | set() | frozenset():
            for each in value:
                yield from _all_texts(each)
        case _:
            yield value if isinstance(value, str) else json.dumps(value, default=str)
