"""The answers that a test gives, and the requests that they match, with messages for requests without one.

Of several answers that fit a request the most specific one is used: one for the step before one for the effect, one
with `when` before one without, one with `times` before one without. Of equal answers, those with `times` are used in
their given order; of the others, the last one replaces the earlier ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from vesper.effects.performer import Ask
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir.failures import is_code
from vesper.values.generated.effects import EFFECTS
from vesper.values.model import Value, plain, show
from vesper.values.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    JSON,
    PERIOD,
    TIME_OF_DAY,
    TIMESTAMP,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
)
from vesper.values.vesper_error import VesperError

NOTHING: Final[Any] = object()
"""What stands where no value was given: None is a value."""


class StubError(VesperError):
    """An error in the answers that a test gives."""


class Unanswered(StubError):
    """The node made a request without an answer. The message has the line that would answer it."""


class StubMismatch(StubError):
    """An answer that the effect cannot have. Its value has another type, or the effect has no such code."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as it reached the Host. `asked["bind"]` is one of its fields."""

    step: str
    """The step, in loops with the iteration (`charge[2]`), of a called node under the calling step (`pay/charge`)."""
    effect: str
    arguments: Mapping[str, Any]
    """What the node computed: plain Python objects."""
    fixed: Mapping[str, str]
    """What the node fixes: the SQL, the provider, the method."""
    key: str | None
    """The idempotency key, where the step has one."""
    effect_class: str
    node: str
    """The id of the node that was called; a request of a node that it calls in turn is told by its step."""
    execution: str
    gives: str
    """The type that the step declares for the answer, as nodes write it."""

    @property
    def fields(self) -> dict[str, Any]:
        """Return all fields of the request by the names that cases use: `fixed`, `arguments`, and `key`."""
        key = {} if self.key is None else {"key": self.key}
        return {**self.fixed, **key, **self.arguments}

    def __getitem__(self, name: str) -> Any:
        fields = self.fields
        if name not in fields:
            hint = did_you_mean(name, fields) or f"it has {', '.join(fields)}"
            raise KeyError(f"`{self.step}` asks with no `{name}`; {hint}")
        return fields[name]

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={_shorten(value)}" for name, value in self.fields.items())
        return f"`{self.step}` ({self.effect}): {shown}"


Condition: TypeAlias = "Mapping[str, Any] | Callable[[Asked], bool]"


def asked_of(ask: Ask, node: str) -> Asked:
    """Return a request in the form that a test sees."""
    arguments = {name: plain(value) for name, value in ask.arguments.items()}
    return Asked(
        plain_step(ask.path),
        ask.effect,
        arguments,
        dict(ask.fixed),
        ask.key,
        ask.effect_class,
        node,
        ask.execution,
        str(ask.gives),
    )


def plain_step(path: str) -> str:
    """Return a path without the marks of skippable steps. The marks are no part of the names in the document."""
    return "/".join(part.lstrip("_") for part in path.split("/"))


# -- one answer -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Answer:
    """One answer that was given to `Stubs.answer`."""

    step: str | None
    effect: str | None
    value: object
    fails: str | None
    function: Callable[[Asked], object] | None
    when: Condition | None
    times: int | None
    optional: bool
    place: str
    """The line of the test."""
    used: int = 0
    is_replaced: bool = False
    """True where a later answer for the same requests took its place."""

    @property
    def rank(self) -> tuple[bool, bool, bool, bool]:
        has_iteration = self.step is not None and "[" in self.step
        return self.step is not None, has_iteration, self.when is not None, self.times is not None

    def is_about(self, asked: Asked) -> bool:
        """Return whether the step and the effect of the answer are those of the request."""
        by_step = self.step is None or _is_step(self.step, asked.step)
        return by_step and self.effect in (None, asked.effect)

    def difference(self, asked: Asked) -> str | None:
        """Return why `when` does not fit the request; None if it does. Raises `StubError` if it never could."""
        if self.when is None:
            return None
        if callable(self.when):
            return None if self.when(asked) else "`when` says no"
        return difference(asked, self.when)

    def __str__(self) -> str:
        words = [] if self.step is None else [f'"{self.step}"']
        words += [] if self.effect is None else [f'effect="{self.effect}"']
        if self.fails is not None:
            words.append(f'fails="{self.fails}"')
        else:
            words.append("with_=…" if self.function is not None else _shorten(self.value))
        words += [] if self.when is None else ["when=…" if callable(self.when) else f"when={_shorten(self.when)}"]
        words += [] if self.times is None else [f"times={self.times}"]
        return f"answer({', '.join(words)})"


def checked_answer(answer: Answer) -> Answer:
    """Return the answer if it is valid. Raises `ValueError`."""
    given = [answer.value is not NOTHING, answer.fails is not None, answer.function is not None]
    if sum(given) != 1:
        said = "nothing" if not any(given) else "more than one of them"
        raise ValueError(f"an answer is a value, `fails=CODE` or `with_=FUNCTION`; this one says {said}")
    if answer.step is None and answer.effect is None:
        raise ValueError('say whose answer it is: answer("STEP", …) or answer(effect="http_request", …)')
    if answer.effect is not None and answer.effect not in EFFECTS:
        hint = did_you_mean(answer.effect, EFFECTS) or f"the effects are {', '.join(EFFECTS)}"
        raise ValueError(f"no effect is called `{answer.effect}`; {hint}")
    if answer.fails is not None and not is_code(answer.fails):
        raise ValueError(
            f"nothing fails with `{answer.fails}`; codes are as in `on_error`: timeout, http_402, conflict"
        )
    if answer.function is not None and not callable(answer.function):
        raise ValueError("with_= is a function that takes the request and gives the value")
    if answer.times is not None and answer.times < 1:
        raise ValueError("times= is how often the answer is given: 1 or more; without it, any number of times")
    if isinstance(answer.when, Mapping) and answer.effect is not None:
        _check_names(answer.effect, answer.when)
    return answer


def _is_step(wanted: str, step: str) -> bool:
    """Return whether a path names the wanted step. A part without an iteration matches all iterations."""
    wants, parts = plain_step(wanted).split("/"), step.split("/")
    return len(wants) == len(parts) and all(
        want == (part if "[" in want else part.partition("[")[0]) for want, part in zip(wants, parts, strict=True)
    )


# -- comparing ------------------------------------------------------------------------------------


def difference(asked: Asked, wanted: Mapping[str, Any]) -> str | None:
    """Return the first field that differs from the wanted ones; None without a difference.

    Only the named members of a mapping are compared. Numbers are compared by value, so that 5 equals 5.00.
    """
    _check_names(asked.effect, wanted)
    fields = asked.fields
    for name, value in wanted.items():
        name = name.removesuffix("_")  # `from_=…`, because `from` is a word of Python
        found = _difference(fields.get(name), value, name)
        if found is not None:
            return found
    return None


def _check_names(effect: str, wanted: Mapping[str, Any]) -> None:
    spec = EFFECTS[effect]
    names = [*spec.fixed, *(each.name for each in spec.arguments)]
    if set(spec.classes) & {"keyed", "probe"} and "key" not in names:
        names.append("key")
    for name in wanted:
        if name.removesuffix("_") not in names:
            hint = did_you_mean(name, names) or f"it has {', '.join(names)}"
            raise StubError(f"a request of `{effect}` has no `{name}`; {hint}")


def _difference(found: Any, wanted: Any, place: str) -> str | None:
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for name, value in wanted.items():
            if name not in found:
                return f"{place} has no {_shorten(name)}"
            inner = _difference(found[name], value, f"{place}.{name}" if isinstance(name, str) else f"{place}[{name}]")
            if inner is not None:
                return inner
        return None
    if isinstance(wanted, list | tuple) and isinstance(found, list):
        if len(wanted) != len(found):
            return f"{place} has {len(found)} items, not {len(wanted)}"
        pairs = enumerate(zip(found, wanted, strict=True))
        return next((told for n, (one, two) in pairs if (told := _difference(one, two, f"{place}[{n}]"))), None)
    is_other_kind = isinstance(wanted, int) and isinstance(wanted, bool) != isinstance(found, bool)
    if is_other_kind or wanted != found:  # in this order: `wanted` may be something like `unittest.mock.ANY`
        hint = ""
        if isinstance(wanted, float) and isinstance(found, Decimal):
            hint = f'; a decimal is exact: write Decimal("{wanted}")'
        return f"{place} is {_shorten(found)}, not {_shorten(wanted)}{hint}"
    return None


def _shorten(value: object) -> str:
    text = show(cast(Value, value)) if isinstance(value, Mapping | list) else repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


_SHOWN = 300


# -- all of them ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Answers:
    """All answers of a test."""

    given: list[Answer] = field(default_factory=list)

    def add(self, answer: Answer) -> None:
        if answer.times is None:
            for before in self.given:
                is_same = (before.step, before.effect, before.when) == (answer.step, answer.effect, answer.when)
                before.is_replaced |= is_same and before.times is None
        self.given.append(answer)

    def find(self, asked: Asked) -> Answer | None:
        """Return the answer for a request and count its use; None without one."""
        best: Answer | None = None
        for answer in self.given:
            is_spent = answer.is_replaced or (answer.times is not None and answer.used >= answer.times)
            if is_spent or not answer.is_about(asked) or answer.difference(asked) is not None:
                continue
            if best is None or answer.rank > best.rank or (answer.rank == best.rank and answer.times is None):
                best = answer
        if best is not None:
            best.used += 1
        return best

    def near(self, asked: Asked) -> list[str]:
        """Return descriptions of similar answers, with the reason why each does not fit the request."""
        found: list[str] = []
        for answer in self.given:
            if answer.is_about(asked):
                why = answer.difference(asked) or f"it was given {answer.times} times already, as `times` says"
                found.append(f"{answer} at {answer.place}: {why}")
        steps = {answer.step for answer in self.given if answer.step is not None and not answer.used}
        return found or [f"there is an answer for `{each}`" for each in steps if did_you_mean(each, [asked.step])]

    def unused(self, steps: set[str]) -> list[str]:
        """Return the answers that requests used too seldom or never. `steps` are those of the nodes that ran."""
        told: list[str] = []
        for answer in self.given:
            wanted = answer.times or 1
            if answer.used >= wanted or answer.optional or answer.is_replaced:
                continue
            why = "it was never asked for" if not answer.used else f"it was used {answer.used} times of {wanted}"
            if answer.step is not None and not any(_is_step(answer.step.partition("[")[0], each) for each in steps):
                hint = did_you_mean(answer.step, steps)
                why += "; no node that ran has such a step" + (f": {hint}" if hint else "")
            told.append(f"{answer} at {answer.place}: {why}")
        return told


# -- telling --------------------------------------------------------------------------------------


def unanswered(asked: Asked, gives: Type, answers: Answers) -> Unanswered:
    """Return the error of a request without an answer; its message has the line that would answer it."""
    lines = [
        f"nobody answers `{asked.step}` ({asked.effect}) of {asked.node}",
        "  it asks: " + ", ".join(f"{name}={_shorten(value)}" for name, value in asked.fields.items()),
    ]
    lines += [f"  not this: {each}" for each in answers.near(asked)]
    lines += ["  answer it before the node is called:", f'    host.answer("{asked.step}", {example(gives)})']
    if asked.effect in ("database_query", "database_write"):
        lines.append('  or let a database of the test do it: Stubs(database="CREATE TABLE …")')
    return Unanswered("\n".join(lines))


def example(type_: Type) -> str:
    """Return an example of a value of the type, in the syntax of Python."""
    match type_:
        case OptionalOf(inner):
            return example(inner)
        case ArrayOf(element):
            return f"[{example(element)}]"
        case SetOf(element):
            return f"{{{example(element)}}}"
        case MapOf(key, value):
            return f"{{{example(key)}: {example(value)}}}"
        case Record(fields):
            return f"{{{', '.join(f'{name!r}: {example(each)}' for name, each in fields)}}}".replace("'", '"')
        case Enum(members=members):
            return f'"{members[0]}"'
        case _:
            return _EXAMPLES.get(type_, '"…"')


_EXAMPLES: dict[Type, str] = {
    BOOLEAN: "True",
    INTEGER: "1",
    DECIMAL: 'Decimal("1.00")',
    FLOAT: "1.0",
    BYTES: 'b"…"',
    DATE: "date(2026, 11, 15)",
    TIMESTAMP: "datetime(2026, 11, 15, 12, tzinfo=UTC)",
    DURATION: "timedelta(seconds=1)",
    TIME_OF_DAY: "time(12)",
    PERIOD: "Period(1)",
    JSON: "{}",
}


def place_of_test(depth: int) -> str:
    """Return the file and line of the call that is `depth` calls above the caller of this function."""
    frame = sys._getframe(depth + 1)
    path = Path(frame.f_code.co_filename)
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return f"{shown}:{frame.f_lineno}"
