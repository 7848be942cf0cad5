"""Recording of the outcome that a person gives for a request in doubt.

Commands and pages use it. The outcome is checked against its step first. Every refusal is a `JournalError`, raised
before anything is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vesper.compiler import Compiled
from vesper.effects.performer import EffectFailed
from vesper.effects.stored_json import stored_value
from vesper.host.finishing import check_equipped, compiled_of
from vesper.host.host import Host
from vesper.host.plans import Plan, plans_of
from vesper.journal.audit import audit_change
from vesper.journal.doubts import Doubt, open_doubts
from vesper.journal.journal import JournalError, Recorded
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.values.generated.effects import EFFECTS
from vesper.values.model import printable
from vesper.values.types import STRING, ArrayOf, MapOf, OptionalOf, Record, Type, without_null

_HTTP_CODE = re.compile(r"http_[1-5][0-9]{2}", re.ASCII)
_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class StatedOutcome:
    """A person's statement about a request in doubt. Without result and code the request is performed now."""

    result: str | None = None
    """JSON of the type that the step gives."""
    failed: str | None = None
    """The code that the effect failed with."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A recorded outcome."""

    path: str
    outcome: str
    dropped: Sequence[str]
    """Fields of the result that the step does not declare."""


def resolve(
    host: Host, recorded: Recorded, step: str, given: StatedOutcome, by: str, why: str, finishes: bool
) -> Resolved:
    """Record the outcome of a step in doubt. With `finishes`, the caller then finishes the run on this Host."""
    journal, summary = host.journal, recorded.summary
    path = find_doubt(recorded, step).path
    compiled = compiled_of(journal, recorded)
    plan = plan_of(compiled, path)
    if finishes:
        check_equipped(host, compiled)
    value, dropped = (None, []) if given.result is None else _read_result(plan, path, given.result)
    code = None if given.failed is None else _check_code(plan, path, given.failed)
    is_undone = given.result is None and code is None
    journal.resolve(summary.execution, path, value, code, by, why, is_undone)
    outcome = "not done" if is_undone else "succeeded" if code is None else code
    audit_change(journal, "journal_resolve", summary.execution, summary.node_id, by, step=path, said=outcome, why=why)
    return Resolved(path, outcome, dropped)


def find_doubt(recorded: Recorded, step: str) -> Doubt:
    """Return the doubt at this step. The error for another step names the steps in doubt."""
    execution = recorded.summary.execution
    doubts = open_doubts(recorded)
    if not doubts:
        status = str(recorded.summary.status).replace("_", " ")
        raise JournalError(f"execution {execution} has no step in doubt: it is {status}")
    found = next((each for each in doubts if each.path == step), None)
    if found is None:
        places = ", ".join(f"`{printable(each.path)}`" for each in doubts)
        raise JournalError(
            f"execution {execution} has no request in doubt at `{printable(step[:80])}`; in doubt: {places}"
        )
    if found.obstacle is not None:
        raise JournalError(f"`{printable(found.path)}` of execution {execution} cannot be resolved: {found.obstacle}")
    return found


def plan_of(compiled: Compiled, path: str) -> Plan:
    """Return the plan of the request in the definition of the run."""
    try:
        return plans_of(compiled).of(path)
    except KeyError:
        raise JournalError(f"{compiled.node.node_id} has no step `{path}`: the journal was changed") from None


def _read_result(plan: Plan, path: str, text: str) -> tuple[object, list[str]]:
    """Read a result like an answer of the other side. Also returns the undeclared fields, which are dropped."""
    try:
        value = stored_value(plan.gives, text, "the result")
    except EffectFailed as failure:
        hint = ""
        if without_null(plan.gives) == STRING and not text.lstrip().startswith('"'):
            hint = "; a JSON string has quotes: '\"ok\"'"
        raise JournalError(
            f"{printable(failure.message)}; `{printable(path)}` gives {plan.gives}{hint}. Nothing was written"
        ) from None
    return value, list(_find_undeclared(plan.gives, json.loads(text), ""))


def _find_undeclared(type_: Type, form: object, at: str) -> Iterator[str]:
    match type_, form:
        case OptionalOf(inner), _:
            yield from _find_undeclared(inner, form, at)
        case ArrayOf(element), list():
            for number, item in enumerate(form):
                yield from _find_undeclared(element, item, f"{at}[{number}]")
        case MapOf(_, of), dict():
            for name, item in form.items():
                yield from _find_undeclared(of, item, f"{at}.{name}")
        case Record() as record, dict():
            types = dict(record.fields)
            for name, item in form.items():
                if name in types:
                    yield from _find_undeclared(types[name], item, f"{at}.{name}")
                else:
                    yield f"{at}.{name}".removeprefix(".")
        case _:
            return


def left_out_text(names: Sequence[str], path: str) -> str:
    shown = ", ".join(printable(each) for each in names[:_MAX_NAMED]) + (", …" if len(names) > _MAX_NAMED else "")
    return f"note: `{printable(path)}` does not declare {shown}: dropped"


def failure_codes(plan: Plan) -> list[str]:
    """Return the codes with which the effect can fail. `http_STATUS` stands for any status of an HTTP response."""
    codes = EFFECTS[plan.effect].codes()
    return [*(each for each in codes if each != "http_error"), *(["http_STATUS"] if "http_error" in codes else [])]


def _check_code(plan: Plan, path: str, code: str) -> str:
    """Return the code if the effect can fail with it; otherwise refuse it."""
    codes = failure_codes(plan)
    is_http = "http_STATUS" in codes
    if (code in codes and code != "http_STATUS") or (is_http and _HTTP_CODE.fullmatch(code)):
        return code
    known = [each.replace("http_STATUS", "http_404") for each in codes]
    names = ", ".join(each.replace("http_STATUS", "http_STATUS (as http_404)") for each in codes)
    hint = did_you_mean(code, known) or f"it can fail with {names}"
    raise JournalError(
        f"{printable(code[:80])}: `{printable(path)}` cannot fail with this code; {hint}. Nothing was written"
    )
