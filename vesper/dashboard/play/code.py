"""Listings of the editor's node: Python, IR, bytecode, machine code, linked to lines of its text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from vesper.compiler import Compiled
from vesper.dashboard.problem import BadRequest, Refused
from vesper.engines.listings import FORMS, NoListing, listing

MAX_CHARACTERS = 2_000_000
_COMMENT = re.compile(r" *# .*?, line (\d+)\b")
_EXPRESSION = re.compile(r"; expression (\d+)$")
_CLAUSE = re.compile(r"; (constraint|precondition|postcondition|invariant) (\d+)$")


@dataclass(frozen=True, slots=True)
class Code:
    """A listing, and the lines of the node that begin its parts."""

    kind: str
    text: str
    links: tuple[tuple[int, int], ...]
    """Line of the listing and line of the node, in the order of the listing; none where no map exists."""


def code_of(compiled: Compiled, kind: str) -> Code:
    """Return the output of `vesper compile --emit KIND`; the IR is indented. Raises `Refused`."""
    if kind not in FORMS:
        raise BadRequest(f"there is no listing `{kind[:40]}`", f"Use one of {', '.join(FORMS)}.")
    try:
        text = listing(compiled, kind)
    except NoListing as problem:
        raise Refused(str(problem), "The bytecode shows what the direct engine runs instead.") from None
    if kind == "ir":
        text = json.dumps(json.loads(text), indent=1, ensure_ascii=False)
    if len(text) > MAX_CHARACTERS:
        raise Refused(f"the listing has {len(text):,} characters", f"Run `vesper compile --emit {kind}` instead.")
    return Code(kind, text, _links(compiled, text) if kind in ("python", "python-traced", "bytecode") else ())


def _links(compiled: Compiled, text: str) -> tuple[tuple[int, int], ...]:
    expressions, phases = compiled.node.expressions(), dict(compiled.node.phases())
    found: list[tuple[int, int]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _COMMENT.match(line):
            found.append((number, int(match[1])))
        elif match := _EXPRESSION.search(line):
            found.append((number, expressions[int(match[1])].place.line))
        elif match := _CLAUSE.search(line):
            found.append((number, phases[match[1]][int(match[2])].holds.place.line))
    return tuple(found)
