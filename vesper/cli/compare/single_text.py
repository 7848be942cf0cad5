"""Answers about one node as text and as JSON: monotone outputs, and the range of an output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vesper.changes.compare.single import Extreme, MonotoneResult, RangeResult
from vesper.changes.compare.versions import Version
from vesper.cli.output.outcomes import json_value
from vesper.cli.output.terminal import style
from vesper.values.model import show

_MAX_CHARS = 60


def monotone_text(found: MonotoneResult) -> str:
    node = found.version.node.node_id
    listed = ", ".join(f"`{each}`" for each in found.outputs)
    if found.fall is None:
        how = f"proven: all {found.tried:,} inputs" if found.is_proven else f"no fall found in {found.tried:,} inputs"
        verdict, colour = ("monotone", "green") if found.is_proven else ("none found", "yellow")
        return f"{style(verdict, colour, 'bold')}: {node}: {listed} by `{found.input}`: {how}"
    fall = found.fall
    rest = {name: value for name, value in fall.given.inputs.items() if name != found.input}
    given = fall.given.inputs[found.input]
    return "\n".join(
        [
            f"{style('falls', 'red', 'bold')}: {node}: `{fall.output}` falls although `{found.input}` grows",
            f"   {found.input}={show(given)}: {fall.output}={show(fall.before)}",
            f"   {found.input}={show(fall.larger)}: {fall.output}={show(fall.after)}",
            f"   other inputs: {_inputs(rest)}",
        ]
    )


def monotone_json(found: MonotoneResult) -> dict[str, Any]:
    verdict = "falls" if found.fall is not None else "monotone" if found.is_proven else "none_found"
    report: dict[str, Any] = {
        "node": found.version.node.node_id,
        "monotone": found.input,
        "outputs": list(found.outputs),
        "verdict": verdict,
        "inputs": found.tried,
    }
    fall = found.fall
    if fall is not None:
        report["witness"] = {
            "inputs": _json(found.version, fall.given.inputs),
            "larger": json_value(fall.larger),
            "output": fall.output,
            "values": [json_value(fall.before), json_value(fall.after)],
        }
    return report


def range_text(found: RangeResult) -> str:
    node = found.version.node.node_id
    how = (
        f"proven: all {found.tried:,} inputs" if found.is_proven else f"observed in {found.tried:,} inputs, not proven"
    )
    if found.low is None or found.high is None:
        return f"no value: {node}: no execution returned `{found.output}` ({how})"
    lines = [f"{style('range', 'green', 'bold')}: {node}: `{found.output}` ({how})"]
    for word, extreme in (("smallest", found.low), ("largest", found.high)):
        lines.append(f"   {word:<8} {_short(extreme.value)}: {_inputs(extreme.given.inputs)}")
    return "\n".join(lines)


def range_json(found: RangeResult) -> dict[str, Any]:
    return {
        "node": found.version.node.node_id,
        "bounds": found.output,
        "is_proven": found.is_proven,
        "inputs": found.tried,
        "smallest": _extreme_json(found.version, found.low),
        "largest": _extreme_json(found.version, found.high),
    }


def _extreme_json(version: Version, extreme: Extreme | None) -> dict[str, Any] | None:
    if extreme is None:
        return None
    return {"value": json_value(extreme.value), "inputs": _json(version, extreme.given.inputs)}


def _short(value: object) -> str:
    """Return a value as text, a very long one by its beginning and its length."""
    text = show(value)
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}… ({len(text):,} characters)"


def _inputs(inputs: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in inputs.items()) or "none"


def _json(version: Version, inputs: Mapping[str, object]) -> dict[str, Any]:
    types = {each.name: each.type for each in version.node.inputs}
    return {name: json_value(value, types.get(name)) for name, value in inputs.items()}
