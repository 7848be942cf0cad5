"""Check the index of the example nodes against the nodes; `make update` rewrites it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.console import ROOT
from tests.support.goldens import Golden

PAGE = ROOT / "docs" / "examples.md"
NODES = sorted((ROOT / "nodes").rglob("*.vsp"))
SHOWN = {
    "decision tables": r"operation: decision_table|^tables:|^ +table:$",
    "tables with another hit policy than `first`": r"\bhit: (?!first)",
    "rows from a file": r"rows: \{file:",
    "matching a value": r"operation: match",
    "loops with state": r"operation: loop",
    "chains over lists": r"operation: data_transform",
    "functions of the node": r"^functions:",
    "recursion": r"max_depth:",
    "declared errors": r"error_code: \S*enum",
    "dates and times": r": (?:date|timestamp|duration|time_of_day|period)\b",
    "patterns of texts": r"pattern:|matches\(|groups\(|replace_pattern\(|split_pattern\(",
    "JSON values": r": json\b|CAST\(|parse_json\(",
    "calls of other nodes": r"operation: call_node|^ +node: ",
    "libraries": r"^use:|^library_id:",
    "values that change with time": r"^parameters:",
    "names of other systems": r"\bas: ",
    "properties over two runs": r"^  properties:",
    "agents and supervisors": r"^type: (?:agent|supervisor)",
    "commands and MCP tools": r"operation: (?:shell_command|mcp_call)",
    "requests in parallel": r"^parallel:|operation: parallel|max_in_flight:",
    "decisions of people": r"operation: interrupt",
    "databases": r"operation: database_",
    "HTTP services": r"operation: external_api_call",
    "caches": r"operation: cache",
    "events": r"operation: event_publish",
    "secrets, random numbers, clocks": r"operation: (?:secret|random|uuid|clock)",
    "files, custom effects": r"operation: (?:file|custom)",
    "state machines": r"^state_machines:",
    "handlers of failures": r"^ +on_error:|error_handling:",
    "compensation": r"compensate:",
    "retries, rate limits, circuit breakers": r"retry:|rate_limit:|circuit_breaker:",
    "requests with a key": r"effect: keyed",
    "HTTP routes": r"^http:",
    "sensitive data": r"sensitive_data:|sensitive:",
    "audit": r"audit_level: (?!none)|^ +audit:",
}
MAX_NAMED = 8


def field(text: str, name: str) -> str:
    found = re.search(rf"^{name}: (.+?)(?: +#.*)?$", text, re.MULTILINE)
    return found[1].rstrip(".") if found else ""


def link(path: Path) -> str:
    return f"[`{path.stem}`](../{path.relative_to(ROOT).as_posix()})"


def index() -> str:
    """Return the page after its introduction."""
    texts = {path: path.read_text(encoding="utf-8") for path in NODES}
    by_length = sorted(NODES, key=lambda path: len(texts[path]))
    parts = ["## By what they show\n\n| | nodes |\n|---|---|\n"]
    for name, pattern in SHOWN.items():
        found = [link(path) for path in by_length if re.search(pattern, texts[path], re.MULTILINE)]
        assert found, f"no node has {name}"
        parts.append(f"| {name} | {' · '.join(found[:MAX_NAMED])} |\n")
    parts.append("\n## By topic\n")
    for folder in sorted({path.parent for path in NODES}):
        parts.append(f"\n### {folder.name.capitalize()}\n\n| node | type | purpose |\n|---|---|---|\n")
        for path in (each for each in NODES if each.parent == folder):
            kind, purpose = (field(texts[path], name) for name in ("type", "intent"))
            parts.append(f"| {link(path)} | {kind or 'library'} | {purpose} |\n")
    return "".join(parts)


def test_the_index_is_that_of_the_nodes(golden: Golden) -> None:
    head, _, _ = PAGE.read_text(encoding="utf-8").partition("## By what they show")
    golden.check(PAGE, head + index())
