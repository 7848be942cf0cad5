"""Entries of the journal with readable names, for commands and pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vesper.journal.entry import Entry, Kind
from vesper.journal.moments import took_text
from vesper.values.model import printable, show

ERASED = "<erased>"
_MAX_LINES = 40
_MAX_COLUMNS = 400


def words(name: str) -> str:
    """Return an internal name with spaces instead of underscores."""
    return printable(name).replace("_", " ")


def effect_text(entry: Entry, hides: bool) -> str:
    """Render the effect of a request, with its class and its key."""
    if not entry.effect:
        return ""
    inside = [entry.effect_class] if entry.effect_class else []
    if entry.key is not None:
        inside.append("key <sensitive>" if hides else f"key {show(entry.key)}")
    return entry.effect + (f" ({', '.join(inside)})" if inside else "")


def entry_values(entry: Entry) -> dict[str, object]:
    """Return the body of an entry with readable names; unknown names are unchanged."""
    body = dict(entry.body)
    values: dict[str, object] = {}
    match entry.kind:
        case Kind.START:
            for known in ("node_id", "semantic_hash"):
                body.pop(known, None)  # the header has them
            values = {name: body.pop(name) for name in ("inputs", "now") if name in body}
        case Kind.INTENT | Kind.RESULT | Kind.FAILED:
            request = {**_mapping(body.pop("fixed", None)), **_mapping(body.pop("arguments", None))}
            if request:
                values["request"] = request
            if "value" in body:
                values["result"] = body.pop("value")
            if body.pop("may_have_happened", None) is True:
                values["note"] = "the effect may have been performed nevertheless"
        case Kind.RESOLVED:
            if body.pop("not_done", None) is True:
                values["note"] = "the effect was not performed: it is performed when the run is recovered"
            if "value" in body:
                values["result"] = body.pop("value")
        case Kind.HANDOFF:
            values = {name: body.pop(name) or "no process" for name in ("from", "to") if name in body}
        case Kind.END:
            if "outcome" in body:
                values["outcome"] = words(str(body.pop("outcome")))
            if isinstance(took := body.pop("duration_us", None), int):
                values["took"] = took_text(took)
        case _:
            pass
    return {**values, **{printable(name): value for name, value in body.items()}}


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def limit_lines(lines: Sequence[str], note: str) -> list[str]:
    """Cut long lines and a long list of lines. `note` says where the whole text is."""
    shown = [line if len(line) <= _MAX_COLUMNS else f"{line[:_MAX_COLUMNS]}…" for line in lines[:_MAX_LINES]]
    has_more = len(lines) > _MAX_LINES or any(len(line) > _MAX_COLUMNS for line in lines[:_MAX_LINES])
    if has_more:
        gap = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
        shown.append(f"{gap}… ({note})")
    return shown
