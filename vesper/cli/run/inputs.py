"""Inputs and start of a run, from the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TextIO, TypeAlias

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.output.outcomes import outcome_lines
from vesper.cli.run.output import print_json
from vesper.compiler import Compiled
from vesper.engines.outcome import Failed, Outcome
from vesper.language.ir.nodes import Input
from vesper.values.generated.errors import ErrorCode
from vesper.values.inputs import accept_inputs
from vesper.values.json_forms import input_of_json
from vesper.values.json_mistake import JsonMistake, place_at
from vesper.values.literal_text import value_from_text
from vesper.values.model import Problem, ProblemKind, ValueProblem, plain
from vesper.values.outside_names import spelled_type, to_inside
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


Unread: TypeAlias = dict[str, tuple[Problem, ...]]
"""Inputs whose text or JSON is no value of their type, and why."""


def read_inputs(
    compiled: Compiled, pairs: tuple[str, ...], json_file: TextIO | None
) -> tuple[dict[str, object], Unread]:
    """Return the given inputs by their inside names, and the problems of those that cannot be read.

    A JSON file has outside names; `--input` takes the name in the node. An unknown name is kept: it is reported
    together with all other inputs that do not fit.
    """
    types = {each.name: each.type for each in compiled.node.inputs}
    unread: Unread = {}
    inputs: dict[str, object] = {} if json_file is None else _read_json(json_file, compiled.node.inputs, unread)
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--input {pair}: write NAME=VALUE")
        if name in inputs:
            raise click.UsageError(f"--input {pair}: `{name}` is given twice")
        inputs[name] = text
        if name in types:
            try:
                inputs[name] = _parse_value(types[name], text, name, unread)
            except ValueProblem as problem:
                unread[name] = (Problem(name, problem.kind),)
    return inputs, unread


def print_refusal(
    compiled: Compiled,
    names: list[str],
    inputs: dict[str, object],
    unread: Unread,
    style: str,
    reveals: bool = False,
) -> int:
    """Print every problem of the inputs in one list.

    These are unreadable texts, and inputs that an engine would refuse.
    """
    declared = [each for each in compiled.node.declared_inputs if each[0] not in unread]
    _, others = accept_inputs(declared, {name: each for name, each in inputs.items() if name not in unread})
    order = [each.name for each in compiled.node.inputs]
    found = [*(each for problems in unread.values() for each in problems), *others]
    found.sort(key=lambda each: order.index(name) if (name := _input_name(each)) in order else len(order))
    outcomes: dict[str, Outcome] = {name: Failed(ErrorCode.BAD_INPUT, None, tuple(found)) for name in names}
    if style == "json":
        print_json(compiled, outcomes, reveals=reveals)
    else:
        refusal = next(iter(outcomes.values()))
        click.echo(outcome_lines(compiled, refusal, inputs, reveals=reveals), err=True)
    return WRONG_INPUT


def _input_name(problem: Problem) -> str:
    """Return the input that the path of a problem begins with."""
    return re.split(r"[.\[]", problem.path, maxsplit=1)[0]


def _parse_value(type_: Type, text: str, name: str, unread: Unread) -> object:
    """Read a scalar as a node spells it; a collection or a record as JSON."""
    scalar = without_null(type_)
    if isinstance(scalar, Primitive | Enum) and scalar != JSON:
        return plain(value_from_text(scalar, text))
    try:
        return _inside(type_, forms_of_json(text), name, name, unread)
    except ValueError:  # a duplicate key
        raise ValueProblem(ProblemKind.DUPLICATE) from None


def _inside(type_: Type, form: object, path: str, name: str, unread: Unread) -> object:
    """Return the object of a JSON form. One with outside names is read here: no engine takes those as objects."""
    spelled = spelled_type(type_)
    given = input_of_json(spelled, form)
    if spelled is type_:
        return given
    values, problems = accept_inputs([(path, spelled, None)], {path: given})
    if problems:
        unread[name] = tuple(problems)
        return given
    return to_inside(type_, plain(values[path]))


def _read_json(file: TextIO, declared: Sequence[Input], unread: Unread) -> dict[str, object]:
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
    by_key = {each.outside or each.name: each for each in declared if each.name not in {own.flag for own in declared}}
    names = {each.name for each in declared}
    found: dict[str, object] = {}
    try:
        for key, form in inputs.items():
            if key in by_key:
                name = by_key[key].name
                found[name] = _inside(by_key[key].type, form, key, name, unread)
                continue
            found[key] = form
            if key in names:  # an inside name, which is unknown outside
                unread[key] = (Problem(key, ProblemKind.UNKNOWN),)
        return found
    except ValueError as error:
        raise click.UsageError(f"--json {file.name}: {error}") from None
