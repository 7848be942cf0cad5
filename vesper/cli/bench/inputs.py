"""Inputs of `vesper bench`: a JSON file, or the cases of the node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vesper.cli.load_node import find_case
from vesper.cli.options import MAX_INPUT_BYTES
from vesper.compiler import Compiled
from vesper.language.check.cases import Case
from vesper.storage.file_access import read_regular
from vesper.values.json_forms import input_of_json
from vesper.values.json_mistake import JsonMistake, place_at
from vesper.values.strict_json import forms_of_json


def read_file(compiled: Compiled, file: Path) -> list[dict[str, Any]]:
    """Read every object of inputs in the file. Numbers with a point are exact decimals."""
    try:
        text = read_regular(file, MAX_INPUT_BYTES).decode("utf-8")
    except FileNotFoundError:
        raise click.UsageError(
            f"--input {file}: no such file; it must hold the inputs as JSON, an object or an array of objects"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise click.UsageError(f"--input {file}: {reason}") from None
    if file.suffix == ".jsonl":
        lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
        found = [_parse(file, line, number) for number, line in lines]
    else:
        parsed = _parse(file, text, 1)
        found = parsed if isinstance(parsed, list) else [parsed]
    if not found:
        raise click.UsageError(f"--input {file}: the file has no inputs")
    types = {each.name: each.type for each in compiled.node.inputs}
    inputs = []
    for position, each in enumerate(found, start=1):
        if not isinstance(each, dict):
            raise click.UsageError(f"--input {file}: input {position} must be a JSON object")
        try:
            inputs.append(
                {name: input_of_json(types[name], form) if name in types else form for name, form in each.items()}
            )
        except ValueError as error:
            raise click.UsageError(f"--input {file}: input {position}: {error}") from None
    return inputs


def _parse(file: Path, text: str, first_line: int) -> object:
    try:
        return forms_of_json(text)
    except JsonMistake as mistake:
        place = place_at(text, mistake.offset)
        where = f"{file}:{place.line + first_line - 1}:{place.column}"
        raise click.UsageError(f"--input {where}: {mistake.what}") from None


def cases_that_return(compiled: Compiled, wanted: str | None) -> list[Case]:
    """Return the cases that end with outputs, or the case of this name."""
    node_id = compiled.node.node_id
    if wanted is not None:
        return [find_case(compiled, wanted)]
    found = [each for each in compiled.cases if each.expect is not None]
    if not found:
        raise click.UsageError(f"{node_id} has no case that returns: give inputs with --input FILE")
    return found
