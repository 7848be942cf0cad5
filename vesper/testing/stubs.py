"""`vesper.testing.Stubs`: a Host with answers from the test.

    with Stubs() as host:
        host.answer("call_stripe_api", {"id": "ch_1", "status": "succeeded"})
        outcome = vesper.load("payment_handler", host=host)(order_id="ord_1", …)
        host.assert_asked("record", bind={"amount": Decimal("9.99")})

Requests that leave the process must be answered. Others are performed here, deterministically: time, sleeps (which
advance `time` and do not wait), random numbers, names of secrets, state machines, and SQL if the test brings a
database.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from vesper.compiler import Compiled
from vesper.effects.database.performer import DatabasePerformer
from vesper.effects.database.settings import DatabaseSettings
from vesper.effects.performer import Ask, EffectFailed
from vesper.effects.stored_json import checked_value
from vesper.engines.engine import Program
from vesper.host.prepared import Prepared
from vesper.host.stub_answers import (
    NOTHING,
    Answer,
    Answers,
    Asked,
    Condition,
    StubError,
    StubMismatch,
    Unanswered,
    asked_of,
    checked_answer,
    difference,
    place_of_test,
    plain_step,
    unanswered,
)
from vesper.language.ir.failures import HTTP_CODE
from vesper.testing.offline_host import OfflineHost, sleep
from vesper.values.generated.effects import EFFECTS
from vesper.values.model import accept, show
from vesper.values.problem import ValueProblem
from vesper.values.times import SleepClock
from vesper.values.types import TIMESTAMP, ArrayOf, MapOf, OptionalOf, Record, Type

__all__ = ["NOON", "Asked", "StubError", "StubMismatch", "Stubs", "Unanswered"]

NOON = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
"""Default start time of runs, equal to that of cases without `now`."""
_SQLITE = b"SQLite format 3\0"
_MAIN = "main"
_STATES = ("state_transition", "state_read")
_SQL = ("database_query", "database_write")


class Stubs(OfflineHost):
    """A Host for tests, with answers given by `answer`. Thread-safe.

    `database` is passed to `use_database`. `time` is the start time of runs and the time of the clock; with a `tick`
    the clock advances by it on each read. With `retries`, each attempt that a step's `retry` allows makes a new request
    without delay; otherwise one answer completes a request, as in the cases of a node.
    """

    def __init__(
        self,
        database: str | PathLike[str] | None = None,
        *,
        time: datetime = NOON,
        tick: timedelta = timedelta(0),
        retries: bool = False,
    ) -> None:
        self._time = _moment(time)
        self._tick = tick
        super().__init__(retries=retries)
        self._answers = Answers()
        self._asked: list[Asked] = []
        self._steps: set[str] = set()
        self._numbers = {"random_integer": 0, "uuid_new": 0}
        self._book = threading.RLock()
        states = self.folder / "states.db"
        self._databases[_MAIN] = DatabaseSettings(_MAIN, f"sqlite:{states}", states, create=True)
        self._with_schema: set[str] = set()
        """Databases with a schema of the test; any other holds only state machines."""
        if database is not None:
            self.use_database(database)

    # -- answers --------------------------------------------------------------------------------------

    def answer(
        self,
        step: str | None = None,
        value: object = NOTHING,
        *,
        effect: str | None = None,
        fails: str | None = None,
        with_: Callable[[Asked], object] | None = None,
        when: Condition | None = None,
        times: int | None = None,
        optional: bool = False,
    ) -> None:
        """Answer the requests of a step or an effect with a value, a failure or a function.

        The function takes the request and may raise `vesper.EffectFailed`.

        `step` is written as in cases: `close[0]` in a loop, or `close` for every round; `paid/begin` in a called node.
        `when` restricts the requests: required fields, or a function of the request. `times` is how often the answer
        can be used, by default without limit. An `optional` answer need not be used.
        """
        self.add_answer(Answer(step, effect, value, fails, with_, when, times, optional, place_of_test(1)))

    def add_answer(self, answer: Answer) -> None:
        """Answer requests as the answer says; `answer` and scripts of models make it."""
        with self._book:
            self._answers.add(checked_answer(answer))

    def publish_chunk(self, execution: str, chunk: Mapping[str, Any]) -> None:
        """Publish a chunk of an answer to the listeners of a run."""
        self._performers.events.publish_chunk(execution, chunk)

    def use_database(self, schema: str | PathLike[str], name: str = _MAIN) -> Path:
        """Perform the SQL of nodes on an SQLite database of the test and return its path.

        `schema` is SQL (`CREATE TABLE …; INSERT …;`), a file with SQL, or an SQLite database, which is copied. `name`
        is the name of the database in steps; state machines are stored in `main`.
        """
        with self._book:
            if self._asked:
                raise StubError("`use_database` must be called before the first node runs")
            if name in self._with_schema:
                raise StubError(f"the database `{name}` is given twice; SQL may have any number of statements")
            path = self.folder / f"{len(self._with_schema)}.db"
            _create_database(path, schema)
            self._databases[name] = DatabaseSettings(name, f"sqlite:{path}", path)
            self._with_schema.add(name)
            return path

    @property
    def time(self) -> datetime:
        """Start time of runs and time of the clock. Advance it with `host.time += timedelta(days=1)`."""
        return self._time

    @time.setter
    def time(self, time: datetime) -> None:
        self._time = _moment(time)

    def moment(self) -> datetime:
        return self._time

    # -- assertions -----------------------------------------------------------------------------------

    @property
    def asked(self) -> list[Asked]:
        """All requests so far, in order."""
        with self._book:
            return list(self._asked)

    def assert_asked(self, step: str, /, *, times: int | None = None, **fields: Any) -> None:
        """Fail unless the step made a request with these fields, at least once or exactly `times`.

        In a mapping, only the named entries are compared; `from_` stands for the field `from`.
        """
        __tracebackhide__ = True
        told, count = self._describe_requests(step, fields)
        if count == times or (times is None and count):
            return
        wanted = "never asked so" if times is None else f"asked so {_count_text(count)}, not {_count_text(times)}"
        raise AssertionError(f"`{step}` {wanted}{told}")

    def assert_not_asked(self, step: str, /, **fields: Any) -> None:
        """Fail if the step made a request with these fields."""
        __tracebackhide__ = True
        told, count = self._describe_requests(step, fields)
        if count:
            raise AssertionError(f"`{step}` asked so {_count_text(count)}{told}")

    def assert_all_used(self) -> None:
        """Fail if an answer was not used, or not as many `times` as given."""
        __tracebackhide__ = True
        with self._book:
            unused = self._answers.unused(self._steps)
        if unused:
            raise AssertionError("\n  ".join(["answers that were not used:", *unused]))

    def rows(self, sql: str, /, *values: object, database: str = _MAIN) -> list[tuple[Any, ...]]:
        """Return rows of a database of the test, as SQLite stores them."""
        if database not in self._databases:
            raise StubError(f"there is no database `{database}`: `use_database` creates one")
        path = self._databases[database].path
        assert path is not None, "all are SQLite"
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute(sql, values).fetchall()

    def _describe_requests(self, step: str, fields: Mapping[str, Any]) -> tuple[str, int]:
        """Return the details of a failing assertion, and how many requests match."""
        asked = self.asked
        probe = Answer(step, None, NOTHING, None, None, None, None, False, "")
        of_step = [each for each in asked if probe.is_about(each)]
        lines = []
        count = 0
        for each in of_step:
            why = difference(each, fields)
            count += why is None
            lines.append(f"{each}" + (f"\n    {why}" if why else ""))
        if not of_step:
            names = dict.fromkeys(each.step for each in asked)
            lines.append(f"the steps with requests are {', '.join(names)}" if names else "no step made a request")
        return "".join(f"\n  {line}" for line in lines), count

    # -- Host -----------------------------------------------------------------------------------------

    def prepare(self, compiled: Compiled, program: Program, engine: str) -> Prepared:
        prepared = super().prepare(compiled, program, engine)
        self._steps |= {plain_step(path) for path in prepared.plans.requests}
        return prepared

    def answered(self, ask: Ask) -> object:
        asked = asked_of(ask, self.here.prepared.compiled.node.node_id)
        try:
            with self._book:
                self._asked.append(asked)
                answer = self._answers.find(asked)
            if answer is None:
                return self._perform_locally(ask, asked)
            return self._evaluate_answer(answer, ask, asked)
        except EffectFailed:
            raise
        except Exception as problem:  # noqa: BLE001  # an exception of the test's own function is raised to the test
            self.give_up(problem)

    def _evaluate_answer(self, answer: Answer, ask: Ask, asked: Asked) -> object:
        """Return the value of an answer, checked against the effect's type and codes."""
        try:
            value = _value(answer, asked)
        except EffectFailed as failure:
            if not _can_fail(ask.effect, failure.code):
                codes = ", ".join(EFFECTS[ask.effect].codes()).replace("http_error", "http_400 to http_599")
                self._mismatch(answer, ask, f"`{ask.effect}` never fails with `{failure.code}`, but with {codes}")
            raise
        what = f"the answer to `{asked.step}`"
        try:
            found = checked_value(ask.gives, _drop_undeclared(ask, value), what)
        except EffectFailed as failure:
            hint = '; a decimal is exact: write Decimal("…"), not a float' if _has_float(value) else ""
            self._mismatch(answer, ask, f"{failure.message}{hint}\n  declared: {ask.gives}\n  answered: {show(value)}")
        sources = [each.strip() for each in ask.fixed.get("from", "").split(",")]
        if ask.effect == "state_transition" and found not in sources:
            allowed = ", ".join(sources)
            self._mismatch(answer, ask, f"{what} is the state before, which is one of {allowed}, not {show(found)}")
        return found

    def _mismatch(self, answer: Answer, ask: Ask, why: str) -> NoReturn:
        """Fail the request as a Host would, and report the wrong answer to the test."""
        self.record_problem(StubMismatch(f"{why}\n  given at {answer.place}"))
        code = "bad_response" if "bad_response" in EFFECTS[ask.effect].fails else "unavailable"
        raise EffectFailed(code, why)

    def _perform_locally(self, ask: Ask, asked: Asked) -> object:
        """Perform an effect that needs no answer of the test."""
        if ask.effect in _STATES:
            return self._real[ask.effect].perform(ask)
        if ask.effect in _SQL and ask.fixed["database"] in self._with_schema:
            databases = self._real[ask.effect]
            assert isinstance(databases, DatabasePerformer)
            return databases.perform(ask, self.here.prepared.plans.of(ask.path).parameters)
        match ask.effect:
            case "clock_now":
                with self._book:
                    now, self._time = self._time, self._time + self._tick
                return now
            case "sleep":
                return self._sleep(ask)
            case "random_integer":
                return self._integer(ask)
            case "uuid_new":
                return f"00000000-0000-4000-8000-{self._next('uuid_new') + 1:012x}"
            case "secret_read":
                return f"secret:{ask.fixed['name']}"
            case _:
                raise unanswered(asked, ask.gives, self._answers)

    def _sleep(self, ask: Ask) -> datetime:
        """Move the clock to the time at which the sleep is due."""
        with self._book:
            clock = SleepClock(self._time)
            due = sleep(clock, ask)
            self._time = clock.now
        return due

    def _integer(self, ask: Ask) -> int:
        """Return the bounds and the numbers between them in turn."""
        least, most = ask.arguments["min"], ask.arguments["max"]
        assert isinstance(least, int)
        assert isinstance(most, int)
        if least > most:
            raise EffectFailed("invalid_argument", f"no integer is at least {least:,} and at most {most:,}")
        return least + self._next("random_integer") % (most - least + 1)

    def _next(self, effect: str) -> int:
        with self._book:
            number = self._numbers[effect]
            self._numbers[effect] += 1
            return number


def _moment(time: object) -> datetime:
    try:
        found = accept(TIMESTAMP, time)
    except ValueProblem:
        raise ValueError(f"time={time!r}: give a datetime with a time zone") from None
    assert isinstance(found, datetime)
    return found


def _count_text(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _value(answer: Answer, asked: Asked) -> object:
    """Return the value of an answer. Raises `EffectFailed` if it is a failure."""
    if answer.fails is not None:
        raise EffectFailed(answer.fails, f"the test lets `{asked.step}` fail ({answer.place})")
    return answer.value if answer.function is None else answer.function(asked)


def _can_fail(effect: str, code: str) -> bool:
    codes = EFFECTS[effect].codes()
    is_status = HTTP_CODE.fullmatch(code) is not None and code.removeprefix("http_").isdigit()
    return is_status if code.startswith("http_") and "http_error" in codes else code in codes


def _drop_undeclared(ask: Ask, value: object) -> object:
    """Drop fields of a provider's response that the node does not declare, as over the network."""
    return _keep_declared(ask.gives, value) if ask.effect == "http_request" else value


def _keep_declared(type_: Type, value: Any) -> Any:
    match type_, value:
        case OptionalOf(inner), _:
            return _keep_declared(inner, value)
        case ArrayOf(element), list():
            return [_keep_declared(element, item) for item in value]
        case MapOf(_, of), dict():
            return {key: _keep_declared(of, item) for key, item in value.items()}
        case Record(fields), dict():
            return {name: _keep_declared(each, value[name]) for name, each in fields if name in value}
        case _:
            return value


def _has_float(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_float, value.values()))
    return any(map(_has_float, value)) if isinstance(value, list | tuple) else isinstance(value, float)


def _create_database(path: Path, schema: str | PathLike[str]) -> None:
    """Create a database from SQL, a file with SQL, or another database."""
    text = schema if isinstance(schema, str) and any(each.isspace() for each in schema.strip()) else None
    file = None if text is not None and not _is_file(text) else Path(schema)
    if file is not None:
        if not file.is_file():
            raise StubError(f"there is no file `{file}`; give SQL, a file with SQL, or an SQLite database")
        with file.open("rb") as opened:
            start = opened.read(len(_SQLITE))
        if start == _SQLITE:
            source = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
            with closing(source), closing(sqlite3.connect(path)) as target:
                try:
                    source.backup(target)
                except sqlite3.Error as error:
                    raise StubError(f"the database `{file}` cannot be copied: {error}") from None
            return
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise StubError(f"`{file}` is neither an SQLite database nor text") from None
    assert text is not None
    with closing(sqlite3.connect(path)) as connection:
        try:
            connection.executescript(text)
            connection.commit()
        except sqlite3.Error as error:
            raise StubError(f"the SQL of the test's database does not run: {error}") from None


def _is_file(text: str) -> bool:
    """Return whether a text is the path of a file; SQL is too long for a path or has invalid characters."""
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False
