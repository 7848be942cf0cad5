"""Inputs and start of a run, from the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TextIO

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.output.outcomes import outcome_lines
from vesper.cli.run.output import print_json
from vesper.compiler import Compiled
from vesper.engines.outcome import Failed, Outcome
from vesper.language.check.expressions.literals import value_from_text
from vesper.values.generated.errors import ErrorCode
from vesper.values.inputs import accept_inputs
from vesper.values.json_forms import input_of_json
from vesper.values.json_mistake import JsonMistake, place_at
from vesper.values.model import Problem, ProblemKind, ValueProblem, plain
from vesper.values.strict_json import forms_of_json
from vesper.values.types import JSON, TIMESTAMP, Enum, Primitive, Type, without_null


def read_start(text: str | None) -> datetime:
    """Read `--now`; the current time without it."""
    if text is None:
        return datetime.now(UTC)
    try:
        value = value_from_text(TIMESTAMP, text)
    except ValueProblem as problem:
        raise click.UsageError(f"--now {text}: {problem.kind.value}; write 2026-11-15T12:00:00Z") from None
    assert isinstance(value, datetime)
    return value


def read_inputs(
    compiled: Compiled, pairs: tuple[str, ...], json_file: TextIO | None
) -> tuple[dict[str, object], dict[str, ProblemKind]]:
    """Return the given inputs, and why the text of some `--input` is not a value of its type.

    An unknown name is kept: it is reported together with all other inputs that do not fit.
    """
    types = {each.name: each.type for each in compiled.node.inputs}
    inputs: dict[str, object] = {} if json_file is None else _read_json(json_file, types)
    unread: dict[str, ProblemKind] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--input {pair}: write NAME=VALUE")
        if name in inputs:
            raise click.UsageError(f"--input {pair}: `{name}` is given twice")
        inputs[name] = text
        if name in types:
            try:
                inputs[name] = _parse_value(types[name], text)
            except ValueProblem as problem:
                unread[name] = problem.kind
    return inputs, unread


def print_refusal(
    compiled: Compiled, names: list[str], inputs: dict[str, object], unread: dict[str, ProblemKind], style: str
) -> int:
    """Print every problem of the inputs in one list: unreadable texts, and what an engine would refuse."""
    declared = [(each.name, each.type, each.default) for each in compiled.node.inputs if each.name not in unread]
    _, others = accept_inputs(declared, {name: each for name, each in inputs.items() if name not in unread})
    order = [each.name for each in compiled.node.inputs]
    found = [*(Problem(name, kind) for name, kind in unread.items()), *others]
    found.sort(key=lambda each: order.index(name) if (name := _input_name(each)) in order else len(order))
    outcomes: dict[str, Outcome] = {name: Failed(ErrorCode.BAD_INPUT, None, tuple(found)) for name in names}
    if style == "json":
        print_json(compiled, outcomes)
    else:
        click.echo(outcome_lines(compiled, next(iter(outcomes.values())), inputs), err=True)
    return WRONG_INPUT


def _input_name(problem: Problem) -> str:
    """Return the input that the path of a problem begins with."""
    return re.split(r"[.\[]", problem.path, maxsplit=1)[0]


def _parse_value(type_: Type, text: str) -> object:
    """Read a scalar as a node spells it; a collection or a record as JSON."""
    scalar = without_null(type_)
    if isinstance(scalar, Primitive | Enum) and scalar != JSON:
        return plain(value_from_text(scalar, text))
    try:
        return input_of_json(type_, forms_of_json(text))
    except ValueError:  # a duplicate key
        raise ValueProblem(ProblemKind.DUPLICATE) from None


def _read_json(file: TextIO, types: Mapping[str, Type]) -> dict[str, object]:
    """Read a JSON object. A number with a point is an exact decimal, never a float."""
    try:
        text = file.read()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"--json {file.name}: {error}; JSON must be UTF-8") from None
    try:
        inputs = forms_of_json(text)
    except JsonMistake as mistake:
        place = place_at(text, mistake.offset)
        raise click.UsageError(f"--json {file.name}:{place.line}:{place.column}: {mistake.what}") from None
    if not isinstance(inputs, dict):
        raise click.UsageError(f"--json {file.name}: the inputs must be a JSON object")
    try:
        return {name: input_of_json(types[name], form) if name in types else form for name, form in inputs.items()}
    except ValueError as error:
        raise click.UsageError(f"--json {file.name}: {error}") from None
