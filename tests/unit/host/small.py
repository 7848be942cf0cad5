"""Nodes of a test's own, on a Host of its own."""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

from vesper.api.node import Node
from vesper.compiler import Compiled, compile_file
from vesper.config.settings import config_from
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.journal.entry import Entry, Kind
from vesper.language.diagnostics.render.full import render_full

_compiling = threading.Lock()


@lru_cache(maxsize=512)
def _compiled(text: str, folder: str) -> Compiled:
    found = re.search(r"^node_id: (\S+)$", text, re.MULTILINE)
    assert found is not None
    path = Path(folder) / f"{found[1]}.vsp"
    path.write_text(text, encoding="utf-8")
    compiled, bag = compile_file(path)
    assert compiled is not None, "\n".join(render_full(bag.source, each) for each in bag.sorted())
    return compiled


def compiled_in(text: str, folder: Path) -> Compiled:
    """The node that the text is, in a file of the folder."""
    with _compiling:
        return _compiled(text.lstrip("\n"), str(folder))


def node_from(text: str, folder: Path, host: Host, engine: str = "python") -> Node:
    """The node that the text is. Any number of threads may ask for the same."""
    compiled = compiled_in(text, folder)
    return Node(compiled, ENGINES[engine].load(compiled), engine, None, (), host)


def host_in(folder: Path, settings: dict[str, Any], **more: Any) -> Host:
    """A Host with a journal in SQLite and every grant, unless the settings say otherwise. Nobody recovers by
    themselves: a test says when."""
    return Host(
        config_from(
            {
                "grants": [{"nodes": ["*"], "allow": ["*"]}],
                "journal": {"dsn": f"sqlite:{folder / 'journal.db'}"},
                "recovery": {"enabled": False},
                **settings,
            },
            folder,
        ),
        **more,
    )


def entries(host: Host, outcome: Any) -> list[Entry]:
    return [each.entry for each in host.journal.read(outcome.trace_id).entries]


def kinds(host: Host, outcome: Any) -> list[str]:
    return [f"{each.kind} {each.path}".strip() for each in entries(host, outcome)]


def decisions(host: Host, outcome: Any) -> list[dict[str, Any]]:
    """What the policies decided, in order."""
    return [dict(each.body) for each in entries(host, outcome) if each.kind is Kind.VALUE]


def message_of(host: Host, outcome: Any) -> str:
    """What the journal says of the first step that failed."""
    return next(str(each.body["message"]) for each in entries(host, outcome) if each.kind is Kind.FAILED)
