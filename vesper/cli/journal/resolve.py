"""The outcome that a person gives for a request in doubt, checked against its step before anything is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

import click

from vesper.cli.journal.text import Doubt, open_doubts
from vesper.compiler import Compiled
from vesper.effects.performer import EffectFailed
from vesper.effects.stored_json import stored_value
from vesper.host.plans import Plan, plans_of
from vesper.host.prepared import compiled_from
from vesper.journal.journal import Journal, JournalError, Recorded
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.values.generated.effects import EFFECTS
from vesper.values.model import printable
from vesper.values.types import STRING, ArrayOf, MapOf, OptionalOf, Record, Type, without_null

_HTTP_CODE = re.compile(r"http_[1-5][0-9]{2}", re.ASCII)
_MAX_NAMED = 5


def find_doubt(recorded: Recorded, step: str) -> Doubt:
    """Return the doubt at this step; otherwise end the command with the steps in doubt."""
    execution = recorded.summary.execution
    doubts = open_doubts(recorded)
    if not doubts:
        status = str(recorded.summary.status).replace("_", " ")
        raise click.ClickException(f"execution {execution} has no step in doubt: it is {status}")
    found = next((each for each in doubts if each.path == step), None)
    if found is None:
        places = ", ".join(f"`{printable(each.path)}`" for each in doubts)
        raise click.ClickException(
            f"execution {execution} has no request in doubt at `{printable(step[:80])}`; in doubt: {places}"
        )
    if found.obstacle is not None:
        raise click.ClickException(
            f"`{printable(found.path)}` of execution {execution} cannot be resolved: {found.obstacle}"
        )
    return found


def compiled_of(journal: Journal, recorded: Recorded) -> Compiled:
    """Return the definition that the run began with."""
    return compiled_from(journal.definition(recorded.summary.semantic_hash))


def plan_of(compiled: Compiled, path: str) -> Plan:
    """Return the plan of the request in the definition of the run."""
    try:
        return plans_of(compiled).of(path)
    except KeyError:
        raise JournalError(f"{compiled.node.node_id} has no step `{path}`: the journal was changed") from None


def read_result(plan: Plan, path: str, text: str) -> tuple[object, list[str]]:
    """Read `--result` like an answer of the other side; also return the undeclared fields, which are dropped."""
    try:
        value = stored_value(plan.gives, text, "--result")
    except EffectFailed as failure:
        hint = ""
        if without_null(plan.gives) == STRING and not text.lstrip().startswith('"'):
            hint = "; a JSON string has quotes: --result '\"ok\"'"
        raise click.ClickException(
            f"{printable(failure.message)}; `{printable(path)}` gives {plan.gives}{hint}. Nothing was written"
        ) from None
    return value, list(_left_out(plan.gives, json.loads(text), ""))


def _left_out(type_: Type, form: object, at: str) -> Iterator[str]:
    match type_, form:
        case OptionalOf(inner), _:
            yield from _left_out(inner, form, at)
        case ArrayOf(element), list():
            for number, item in enumerate(form):
                yield from _left_out(element, item, f"{at}[{number}]")
        case MapOf(_, of), dict():
            for name, item in form.items():
                yield from _left_out(of, item, f"{at}.{name}")
        case Record() as record, dict():
            types = dict(record.fields)
            for name, item in form.items():
                if name in types:
                    yield from _left_out(types[name], item, f"{at}.{name}")
                else:
                    yield f"{at}.{name}".removeprefix(".")
        case _:
            return


def left_out_text(names: Sequence[str], path: str) -> str:
    shown = ", ".join(printable(each) for each in names[:_MAX_NAMED]) + (", …" if len(names) > _MAX_NAMED else "")
    return f"note: `{printable(path)}` does not declare {shown}: dropped"


def check_code(plan: Plan, path: str, code: str) -> str:
    """Return the code if the effect can fail with it; otherwise end the command."""
    codes = [each for each in EFFECTS[plan.effect].codes() if each != "http_error"]
    is_http = "http_error" in EFFECTS[plan.effect].codes()
    if code in codes or (is_http and _HTTP_CODE.fullmatch(code)):
        return code
    known = [*codes, *(["http_404"] if is_http else [])]
    names = ", ".join([*codes, *(["http_STATUS (as http_404)"] if is_http else [])])
    hint = did_you_mean(code, known) or f"it can fail with {names}"
    raise click.ClickException(
        f"--failed {printable(code[:80])}: `{printable(path)}` cannot fail with this code; {hint}. Nothing was written"
    )
