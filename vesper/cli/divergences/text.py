"""Divergences as text and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vesper.cli.engine_names import engine_label
from vesper.cli.journal.text import table
from vesper.cli.output.terminal import columns
from vesper.cli.output.value_lines import value_lines
from vesper.journal.moments import moment_json, number, time_text
from vesper.migration.compare.answers import KIND_WORDS, answer_rows, are_requests, first_differing, stored_transcript
from vesper.migration.compare.divergence import Divergence, Exemplar
from vesper.migration.stores.configured import short_epoch
from vesper.values.model import printable, show

if TYPE_CHECKING:
    from vesper.migration.compare.shrinking import Shrunk
    from vesper.migration.compare.transcript import Transcript
    from vesper.migration.stores.store import NodeKey

_MAX_COLUMNS = 48
"""Columns of an answer in a side by side view. A longer answer is cut; `--format json` is complete."""


@dataclass(frozen=True, slots=True)
class ListedDivergence:
    key: NodeKey
    divergence: Divergence
    is_current: bool
    """Whether it belongs to the epoch of its node that was written last."""


# -- list -----------------------------------------------------------------------------------------


def list_lines(listed: Sequence[ListedDivergence]) -> list[str]:
    """Render divergences as a table with a heading."""
    rows = [["fingerprint", "node", "where", "kind", "times", "last seen", "status"]]
    for each in listed:
        found = each.divergence
        rows.append(
            [
                printable(found.fingerprint),
                printable(found.node),
                _cut(found.where),
                found.kind,
                f"{found.count:,}",
                time_text(found.last_us),
                found.status if each.is_current else f"{found.status}, epoch {short_epoch(each.key.epoch)}",
            ]
        )
    return table(rows)


def list_json(listed: ListedDivergence) -> dict[str, Any]:
    return {**_summary_json(listed.key, listed.divergence), "is_current": listed.is_current}


def _summary_json(key: NodeKey, found: Divergence) -> dict[str, Any]:
    return {
        "fingerprint": found.fingerprint,
        "node": found.node,
        "epoch": key.epoch,
        "kind": found.kind,
        "where": found.where,
        "path": found.path or None,
        "engines": list(found.engines),
        "odd": found.odd,
        "count": found.count,
        "first": moment_json(found.first_us),
        "last": moment_json(found.last_us),
        "status": found.status,
        "closed_by": found.closed_by,
        "closed_why": found.closed_why,
        "has_small": found.small is not None,
    }


# -- show -----------------------------------------------------------------------------------------


def show_lines(key: NodeKey, found: Divergence, path_words: Sequence[str]) -> list[str]:
    times = "once" if found.count == 1 else f"{found.count:,} times"
    seen = f"{times}, last {time_text(found.last_us)}"
    if found.first_us != found.last_us:
        seen = f"{times}, from {time_text(found.first_us)} to {time_text(found.last_us)}"
    rows = [
        ["node", f"{printable(found.node)}, epoch {short_epoch(key.epoch)}"],
        ["where", f"{printable(found.where)}: {KIND_WORDS[found.kind]}"],
        *([["odd one out", printable(engine_label(found.odd))]] if found.odd else []),
        ["seen", seen],
        ["status", _status(found)],
        *([["path", printable(found.path)]] if found.path else []),
    ]
    lines = [f"divergence {printable(found.fingerprint)}", *(f"  {each}" for each in table(rows))]
    lines += textwrap.wrap("; ".join(path_words), columns(), initial_indent=" " * 10, subsequent_indent=" " * 10)
    for exemplar in found.exemplars:
        lines += ["", *_exemplar_lines(exemplar, found.engines)]
    if found.count > len(found.exemplars):
        lines += ["", f"{len(found.exemplars)} of {found.count:,} executions are stored"]
    if found.small is not None:
        lines += ["", "the smallest case", *_indent(found.small)]
    elif found.kind != "noise":
        is_sealed = any(each.inputs is None and not each.left_out for each in found.exemplars)
        is_of_function = ":" in found.engines[0]
        more = " --reveal" * is_sealed + " --against MODULE:FUNCTION" * is_of_function
        command = f"vesper divergences shrink {printable(found.fingerprint)}{more}"
        lines += ["", f"`{command}` shrinks it to the smallest case"]
    return lines


def _status(found: Divergence) -> str:
    if found.status == "open":
        return "open"
    return f"closed by {printable(found.closed_by or '?')}: {printable(found.closed_why or '')}"


def _exemplar_lines(exemplar: Exemplar, engines: tuple[str, str]) -> list[str]:
    lines = [f"execution {printable(exemplar.execution)}, {time_text(exemplar.at_us)}"]
    transcript, problem = stored_transcript(exemplar)
    if transcript is not None:
        lines += ["  inputs", *(value_lines(dict(transcript.inputs), "    ") or ["    none"])]
        lines += [f"  began    {time_text(_start_us(transcript), 6)}"] if transcript.now is not None else []
        answers = {
            each.request.path: show(each.value) if each.failure is None else f"failed {each.failure}"
            for each in transcript.exchanges
        }
        lines += ["  effects answered", *value_lines(answers, "    ")] if answers else []
    else:
        lines.append(f"  {problem}")
    heading = "requests" if are_requests(exemplar) else "answers"
    return [*lines, f"  {heading}", *_side_by_side((exemplar.leader, exemplar.follower), engines)]


def _start_us(transcript: Transcript) -> int:
    assert transcript.now is not None
    return int(transcript.now.timestamp() * 1_000_000)


def _side_by_side(texts: tuple[str, str], engines: tuple[str, str]) -> list[str]:
    """Render both answers or requests, one value a line; `*` marks a difference."""
    rows = [["", "", *(printable(engine_label(each)) for each in engines)]]
    for each in answer_rows(*texts):
        rows.append(["*" if each.is_marked else "", each.name, _cut(each.leader or ""), _cut(each.follower or "")])
    return [f"    {line}" for line in table(rows)]


def _first_differing(texts: tuple[str, str]) -> dict[str, str | None] | None:
    found = first_differing(*texts)
    return None if found is None else {"where": found.name, "leader": found.leader, "follower": found.follower}


def _is_same_place(found: Divergence, small: Shrunk) -> bool:
    return small.place == found.place


def _requests_json(found: Divergence, small: Shrunk) -> dict[str, Any] | None:
    texts = small.difference.requests
    if texts is None:
        return None
    return {**dict(zip(found.engines, texts, strict=True)), "differs": _first_differing(texts)}


def _cut(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _MAX_COLUMNS else f"{shown[: _MAX_COLUMNS - 1]}…"


def _indent(text: str) -> list[str]:
    return [f"  {printable(line)}".rstrip() for line in text.rstrip("\n").split("\n")]


def show_json(key: NodeKey, found: Divergence, path_words: Sequence[str]) -> dict[str, Any]:
    return {
        **_summary_json(key, found),
        "path_words": list(path_words),
        "exemplars": [_exemplar_json(each) for each in found.exemplars],
        "small": found.small,
    }


def _exemplar_json(exemplar: Exemplar) -> dict[str, Any]:
    """Return an exemplar as JSON values, in the typed JSON of the journal (`{"$decimal": "1.50"}`)."""
    return {
        "execution": exemplar.execution,
        "at": moment_json(exemplar.at_us),
        "inputs": None if exemplar.inputs is None else json.loads(exemplar.inputs),
        "now": exemplar.now,
        "records": None if exemplar.records is None else json.loads(exemplar.records),
        "leader": exemplar.leader,
        "follower": exemplar.follower,
        "differs": _first_differing((exemplar.leader, exemplar.follower)),
        "left_out_bytes": exemplar.left_out,
    }


# -- shrink ---------------------------------------------------------------------------------------


def shrunk_lines(found: Divergence, small: Shrunk, saved: Path | None) -> list[str]:
    """Render the smallest case, the outcome of each engine, and the file."""
    from vesper.cli.output.outcomes import one_line

    node = small.compiled.node
    size = f"{number(small.size_before, 'byte')} shrunk to {small.size:,} in {small.tries:,} attempts"
    lines = [
        f"{printable(found.fingerprint)}: {size}"
        + ("" if small.is_finished else "; the time limit was reached, a smaller case may exist"),
        "",
        *_indent(small.case),
        "",
        f"{printable(small.difference.where)}: {KIND_WORDS[small.difference.kind]}",
    ]
    if small.difference.requests is not None:
        lines += _side_by_side(small.difference.requests, found.engines)
    else:
        lines += value_lines(
            {engine_label(name): one_line(node, each.outcome) for name, each in small.found.answers.items()}
        )
    lines += [f"  odd one out: {printable(engine_label(small.odd))}"] if small.odd else []
    if not _is_same_place(found, small):
        lines.append(
            "note: the rerun observes every step and differs as shown here; the run on traffic differed elsewhere"
        )
    where = (
        "not saved: the node is sensitive; give a folder with --save"
        if saved is None
        else f"saved as {saved.as_posix()}"
    )
    return [*lines, "", where]


def shrunk_json(found: Divergence, small: Shrunk, saved: Path | None) -> dict[str, Any]:
    from vesper.cli.output.outcomes import json_value, outcome_json

    node = small.compiled.node
    types = {each.name: each.type for each in node.inputs}
    return {
        "fingerprint": found.fingerprint,
        "node": found.node,
        "kind": small.difference.kind,
        "where": small.difference.where,
        "is_same_fingerprint": _is_same_place(found, small),
        "requests": _requests_json(found, small),
        "inputs": {name: json_value(value, types.get(name)) for name, value in small.found.inputs.items()},
        "answers": {name: outcome_json(node, each.outcome) for name, each in small.found.answers.items()},
        "odd": small.odd,
        "case": small.case,
        "saved": None if saved is None else saved.as_posix(),
        "bytes_before": small.size_before,
        "bytes": small.size,
        "tries": small.tries,
        "is_finished": small.is_finished,
    }
