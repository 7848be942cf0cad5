"""What came back: from a status, headers and a body to the value of the completion, or to the code of a failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from vesper.effects.performer import EffectFailed
from vesper.values.json_forms import has_names, value_of_form
from vesper.values.json_value import json_string, parse_json
from vesper.values.model import plain, printable
from vesper.values.problem import ValueProblem
from vesper.values.strict_json import JsonContent
from vesper.values.types import JSON, ArrayOf, MapOf, OptionalOf, Record, Type

_EXCERPT = 200
_CHARSET = re.compile(r"charset\s*=\s*\"?([^\s\";]+)", re.IGNORECASE | re.ASCII)
_GATEWAYS = (502, 504)
"""Statuses of somebody in between, who does not know what became of the request either."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response that was read."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; of several by one name the last."""
    body: bytes
    """Of another status than 2xx perhaps only its beginning."""

    @property
    def is_good(self) -> bool:
        return 200 <= self.status <= 299


class BadResponse(EffectFailed):
    """An answer that is of no use. It was one, so what was asked for has probably happened."""

    def __init__(self, problem: str) -> None:
        super().__init__("bad_response", problem, may_have_happened=True)


Redact = Callable[[str], str]
"""Takes secrets out of a text: before it is cut, since half a secret would not be found."""


def value_of(answer: Answer, gives: Type, provider: str, redact: Redact) -> object:
    """The value, in its Python form, that the body of a 2xx answer is. Raises `EffectFailed`."""
    who = f"the answer of `{provider}` (status {answer.status})"
    if not answer.body:
        if isinstance(gives, OptionalOf) or gives == JSON:
            return None
        raise BadResponse(f"{who} has no body, and a value of type {_short(gives)} is expected")
    kind = answer.headers.get("content-type", "")
    charset = _CHARSET.search(kind)
    if charset is not None and charset[1].lower() not in ("utf-8", "utf8", "us-ascii"):
        raise BadResponse(f"{who} is in the encoding `{excerpt(redact(charset[1]))}`, and JSON is in UTF-8")
    try:
        text = answer.body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadResponse(f"{who} is not in UTF-8: byte {error.start:,} of its body fits no character") from None
    try:
        form = parse_json(text).content
    except ValueProblem as problem:
        told = f", it is of type `{excerpt(redact(kind))}`" if kind else ""
        raise BadResponse(f"{who} is no JSON ({problem.kind}){told}: {excerpt(redact(text))}") from None
    try:
        return plain(value_of_form(gives, form))
    except ValueProblem:
        path, expected, kind_of_problem = _where(gives, form, "body")
        raise BadResponse(
            f"{who} does not fit: {excerpt(redact(path))} is {kind_of_problem}, {_short(expected)} is expected"
        ) from None


def failure_of(answer: Answer, provider: str, longest_wait: float, redact: Redact, note: str = "") -> EffectFailed:
    """The failure that a status is which is not 2xx."""
    message = f"`{provider}` answered with status {answer.status}"
    if note:
        message += f": {note}"
    elif answer.body:
        message += f": {excerpt(redact(answer.body.decode('utf-8', 'replace')))}"
    return EffectFailed(
        f"http_{answer.status}",
        message,
        retry_after=_retry_after(answer.headers.get("retry-after"), longest_wait),
        may_have_happened=answer.status in _GATEWAYS,
    )


def excerpt(text: str) -> str:
    """The beginning of a text that somebody else wrote, on one line."""
    shown = printable(" ".join(text[: 4 * _EXCERPT].split()))
    return shown if len(shown) <= _EXCERPT else shown[: _EXCERPT - 1] + "…"


def _retry_after(text: str | None, longest: float) -> float | None:
    """Seconds, of a number of them or of a date; never more than the settings let a provider ask for."""
    if text is None:
        return None
    if re.fullmatch(r"[0-9]{1,18}", text, re.ASCII):
        return min(float(text), longest)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max(0.0, (moment - datetime.now(UTC)).total_seconds()), longest)


# -- where it does not fit ------------------------------------------------------------------------


def _where(type_: Type, form: JsonContent, path: str) -> tuple[str, Type, str]:
    """The innermost place that does not fit, the type that it should have, and what is wrong with it."""
    for inner, part, inner_path in _parts(type_, form, path):
        if _problem(inner, part) is not None:
            return _where(inner, part, inner_path)
    if isinstance(type_, Record) and isinstance(form, dict):
        for name, field in type_.fields:
            if name not in form and not isinstance(field, OptionalOf):
                return f"{path}.{name}", field, "missing"
    return path, type_, _problem(type_, form) or "malformed"


def _problem(type_: Type, form: JsonContent) -> str | None:
    try:
        value_of_form(type_, form)
    except ValueProblem as problem:
        return problem.kind.value
    return None


def _parts(type_: Type, form: JsonContent, path: str) -> list[tuple[Type, JsonContent, str]]:
    match type_, form:
        case OptionalOf(inner), _ if form is not None:
            return [(inner, form, path)]
        case ArrayOf(element), tuple():
            return [(element, item, f"{path}[{index}]") for index, item in enumerate(form)]
        case MapOf(key, value), dict() if has_names(key):
            return [(value, item, f"{path}[{json_string(name)}]") for name, item in form.items()]
        case Record(fields), dict():
            return [(field, form[name], f"{path}.{name}") for name, field in fields if name in form]
        case _:
            return []


def _short(type_: Type) -> str:
    text = str(type_)
    return text if len(text) <= 80 else text[:79] + "…"
