"""`vesper nodes parameters`: parameters with the dates, values and sources of their entries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import click

from vesper.cli.load_node import find_nodes
from vesper.compiler.callees import Collection
from vesper.compiler.parameters import parameters_of
from vesper.language.check.expressions.parameters import DatedValue, Parameter
from vesper.values.model import printable, show, to_json


@dataclass(frozen=True, slots=True)
class DeclaredParameter:
    """A parameter, and the id of the node or library that declares it."""

    document: str
    parameter: Parameter


def read_day(text: str | None) -> date | None:
    """Return the date of `--on`, or None without the option. Raises `UsageError` for a text that is not a date."""
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"--on {text}: a date is written as 2026-11-15") from None


def find_parameters(root: Path, names: tuple[str, ...]) -> list[DeclaredParameter]:
    """Return the parameters under the root, by id and name; files with errors are named on standard error."""
    collection = Collection(root)
    found: list[DeclaredParameter] = []
    for path in find_nodes((), root, with_libraries=True):
        declared = parameters_of(path, collection)
        if declared is None:
            click.echo(f"note: {path.as_posix()} has errors; `vesper check` shows them", err=True)
            continue
        found += [DeclaredParameter(declared[0], each) for each in declared[1]]
    wanted = [each for each in found if not names or {each.document, each.parameter.name} & set(names)]
    known = {each.document for each in found} | {each.parameter.name for each in found}
    for name in names:
        if name not in known:
            raise click.UsageError(f"no parameter, node or library with parameters is named `{name}`")
    return sorted(wanted, key=lambda each: (each.document, each.parameter.name))


def in_force(parameter: Parameter, day: date) -> DatedValue | None:
    """Return the entry in force at a date, or None."""
    before = [each for each in parameter.entries if each.since <= day]
    return before[-1] if before and before[-1].value is not None else None


def parameter_lines(declared: DeclaredParameter, on: date | None) -> list[str]:
    parameter = declared.parameter
    about = [f"{declared.document}.{parameter.name}", str(parameter.type)]
    about += [f"unit {parameter.unit}"] if parameter.unit else []
    about += [parameter.reference] if parameter.reference else []
    shown = parameter.entries if on is None else (in_force(parameter, on),)
    lines = [
        "  ".join([f"  {each.since}", _value(each), *([each.reference] if each.reference else [])])
        for each in shown
        if each is not None
    ]
    return [printable("  ".join(about)), *(map(printable, lines) if lines else ["  not in force"]), ""]


def _value(entry: DatedValue) -> str:
    return "not in force" if entry.value is None else show(entry.value)


def parameter_json(declared: DeclaredParameter, on: date | None) -> dict[str, Any]:
    parameter = declared.parameter
    form: dict[str, Any] = {
        "document": declared.document,
        "name": parameter.name,
        "type": str(parameter.type),
        "unit": parameter.unit,
        "reference": parameter.reference,
    }
    if on is None:
        return form | {"entries": [_entry_json(parameter, each) for each in parameter.entries]}
    entry = in_force(parameter, on)
    return form | {"on": on.isoformat(), "in_force": None if entry is None else _entry_json(parameter, entry)}


def _entry_json(parameter: Parameter, entry: DatedValue) -> dict[str, Any]:
    value = None if entry.value is None else to_json(parameter.type, entry.value)
    return {"since": entry.since.isoformat(), "value": value, "reference": entry.reference}
