"""Values of answers and signals from the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from vesper.values.json_mistake import JsonMistake
from vesper.values.literal_text import value_from_text
from vesper.values.model import ValueProblem, plain, printable
from vesper.values.strict_json import forms_of_json
from vesper.values.types import BOOLEAN, JSON, STRING, Enum, OptionalOf, Primitive, Record, Type, without_null
from vesper.values.vesper_error import VesperError


@contextmanager
def report_refusals() -> Iterator[None]:
    """End the command with the message of a refused value or of a run that does not wait."""
    try:
        yield
    except VesperError as problem:
        raise click.ClickException(str(problem)) from None


def value_of_json(text: str) -> Any:
    try:
        return forms_of_json(text)
    except (JsonMistake, ValueError) as problem:
        raise click.BadParameter(f"--value is no JSON: {printable(str(problem))}") from None


def value_of_fields(type_: Type, pairs: Sequence[str]) -> dict[str, object]:
    """Read `--set NAME=VALUE` of a record: scalars as a node spells them, anything else as JSON."""
    record = without_null(type_)
    if not isinstance(record, Record):
        raise click.UsageError(f"the answer is {type_}, which has no fields: use --value JSON")
    types = dict(record.fields)
    found: dict[str, object] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or name in found:
            raise click.UsageError(f"--set {pair}: write NAME=VALUE, once for each field")
        if name not in types:
            raise click.UsageError(f"--set {pair}: the answer has no field `{name}`; it has {', '.join(types)}")
        found[name] = _field(types[name], name, text)
    return found


def prompt_answer(type_: Type) -> object:
    """Read an answer from the terminal, field by field; an optional field may stay empty."""
    if not sys.stdin.isatty():
        raise click.UsageError("give the answer with --value JSON or --set NAME=VALUE")
    record = without_null(type_)
    if not isinstance(record, Record):
        return _prompt_field("answer", type_)
    given = {name: _prompt_field(name, each) for name, each in record.fields}
    return {name: each for name, each in given.items() if each is not None}


def _prompt_field(name: str, type_: Type) -> object:
    if type_ == BOOLEAN:
        return click.confirm(name)
    if isinstance(type_, OptionalOf):
        text = click.prompt(f"{name} ({without_null(type_)}, Enter to leave it out)", default="", show_default=False)
        return None if not text else _field(type_, name, text)
    while True:
        text = click.prompt(f"{name} ({type_})")
        try:
            return _field(type_, name, text)
        except click.UsageError as problem:
            click.echo(problem.message, err=True)


def _field(type_: Type, name: str, text: str) -> object:
    scalar = without_null(type_)
    try:
        if isinstance(scalar, Primitive | Enum) and scalar != JSON:
            return text if scalar == STRING else plain(value_from_text(scalar, text))
        return forms_of_json(text)
    except (JsonMistake, ValueProblem, ValueError):
        raise click.UsageError(f"`{name}` is {type_}, and `{printable(text[:80])}` is not") from None
