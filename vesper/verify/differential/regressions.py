"""Divergences stored as conformance cases, which every later run repeats."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

from vesper.compiler import Compiled
from vesper.engines.engine import Completion
from vesper.language.ir.encode import canonical_json
from vesper.storage.file_access import create_private
from vesper.values.model import base64_text, decimal_text, scalar_text
from vesper.values.period import Period
from vesper.verify.differential.verifier import Difference

FOLDER = Path("tests/conformance/regressions")
"""Default folder of the cases."""


def typed_value(value: object) -> dict[str, object]:
    """Return a value with its type, so that a case does not depend on YAML's guesses."""
    match value:
        case bool():
            return {"boolean": value}
        case int():
            return {"integer": value} if -(2**63) <= value < 2**63 else {"python": f"{value:#x}"}
        case Decimal():
            return {"decimal": decimal_text(value)} if value.is_finite() else {"python": repr(value)}
        case str() if value.isprintable():
            return {"string": value}
        case None:
            return {"null": True}
        case datetime() if value.tzinfo is UTC:
            return {"timestamp": scalar_text(value)}
        case date() if type(value) is date:
            return {"date": scalar_text(value)}
        case timedelta():
            return {"duration": scalar_text(value)}
        case time() if value.tzinfo is None:
            return {"time_of_day": scalar_text(value)}
        case Period():
            return {"period": scalar_text(value)}
        case bytes():
            return {"bytes": base64_text(value)}
        case frozenset():
            return {"set": sorted((typed_value(item) for item in value), key=canonical_json)}
        case list():
            return {"array": [typed_value(item) for item in value]}
        case dict() if all(isinstance(key, str) and key.isprintable() for key in value):
            return {"dict": {key: typed_value(found) for key, found in value.items()}}
        case _:
            return {"python": repr(value)}


def regression_text(
    compiled: Compiled, difference: Difference, against: str | None = None, why: str | None = None
) -> str:
    """Return a case that requires agreement on the shrunk input and its completions."""
    who = f"the node and {against}" if difference.with_function else "the engines"
    why = why or f"{who} diverged {'at step ' + difference.step if difference.step else 'here'}"
    given = {name: typed_value(value) for name, value in difference.inputs.items()}
    who = who if difference.way_name is None else f"the engines and the way {difference.way_name}"
    lines = [
        f"- why: {why}",
        f"  node: {compiled.node.node_id}",
        "  inputs:" if given else "  inputs: {}",
        *(f"    {name}: {_flow(form)}" for name, form in given.items()),
    ]
    if difference.now is not None:
        lines.append(f"  now: {_flow(scalar_text(difference.now))}")
    if difference.responses:
        lines += ["  effects:", *(f"    - {_flow(_response(*each))}" for each in difference.responses)]
    if difference.with_function:
        lines.append(f"  against: {_flow(against)}")
    if difference.way_name is not None:
        lines.append(f"  way: {_flow(difference.way_name)}")
    lines.append("  engines: agree")
    return "\n".join(lines) + "\n"


def save_regression(
    folder: Path, compiled: Compiled, difference: Difference, against: str | None = None, why: str | None = None
) -> Path:
    """Write the case and return its path; an input that is already stored is not stored again."""
    text = regression_text(compiled, difference, against, why)
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while (path := folder / f"{compiled.node.node_id}_{number:02}.yaml").exists():
        if path.read_text(encoding="utf-8") == text:
            return path
        number += 1
    _write_private(path, text)
    return path


def _write_private(path: Path, text: str) -> None:
    """Write a new file: its inputs may come from live traffic."""
    with os.fdopen(create_private(path), "w", encoding="utf-8") as file:
        file.write(text)


def _response(path: str, found: Completion) -> dict[str, object]:
    if found.failure is not None:
        return {"path": path, "fails": found.failure}
    return {"path": path, "returns": typed_value(found.result)}


def program_name(text: str) -> str:
    """Return the name of a program's file, which is that of its node."""
    return f"{text.partition('node_id: ')[2].partition(chr(10))[0]}.vsp"


def save_program(folder: Path, text: str) -> Path:
    """Write a random program beside its case, named by its node."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / program_name(text)
    path.unlink(missing_ok=True)
    _write_private(path, text)
    return path


def _flow(value: object) -> str:
    return canonical_json(value).decode("utf-8")
