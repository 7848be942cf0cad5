"""Translation of zen's dates: seconds since 1970 as numbers, and the moments of `d` with their methods."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from vesper.importers.zen.syntax import Array, Interval, Node, Number, String
from vesper.importers.zen.terms import (
    ATOM,
    COALESCE,
    COMPARE,
    Term,
    Untranslatable,
)
from vesper.importers.zen.types import (
    BOOLEAN,
    JSON,
    MOMENT,
    NOTHING,
    NUMBER,
    TEXT,
    ArrayOf,
    Slot,
    Type,
    Variable,
    resolve,
    unify,
)

if TYPE_CHECKING:
    from vesper.importers.zen.expressions import Expressions

_UNITS = {
    **dict.fromkeys(("s", "second", "seconds"), "seconds"),
    **dict.fromkeys(("m", "minute", "minutes"), "minutes"),
    **dict.fromkeys(("h", "hour", "hours"), "hours"),
    **dict.fromkeys(("d", "day", "days"), "days"),
    **dict.fromkeys(("w", "week", "weeks"), "weeks"),
    **dict.fromkeys(("M", "month", "months"), "months"),
    **dict.fromkeys(("y", "year", "years"), "years"),
}
MONTHS = "['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']"
WEEKDAYS = "['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']"
_COMPARED = {"isSame": "==", "isBefore": "<", "isAfter": ">", "isSameOrBefore": "<=", "isSameOrAfter": ">="}
_PARTS = {"second": "second", "minute": "minute", "hour": "hour", "day": "day", "month": "month", "year": "year"}


class Arguments:
    """Translates the arguments of zen's calls to terms."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions

    def _term(self, node: Node) -> Term:
        return self.expressions.term(node)

    def _need(self, node: Node, wanted: Type | None = None) -> Term:
        return self.expressions.need(self._term(node), wanted)

    def _only(self, arguments: tuple[Node, ...]) -> Term:
        if len(arguments) != 1:
            raise Untranslatable(f"{len(arguments)} arguments where zen takes one", is_fault=True)
        return self._term(arguments[0])

    def _array(self, node: Node, item: Type | None = None) -> Term:
        """Return an argument that is an array; an interval is the array of its whole numbers."""
        if isinstance(node, Interval):
            return self._range(node)
        if item is not None and isinstance(node, Array):
            needed = [self.expressions.decimal(self._need(each, item)).text for each in node.items]
            suffix = " AS array<decimal>" if item == NUMBER else ""
            return Term(f"[{', '.join(needed)}]{suffix}", ArrayOf(Slot(item)))
        term = self._term(node)
        type_ = resolve(term.type)
        if isinstance(type_, Variable):
            type_.bound = ArrayOf(Slot(Variable()))
            type_ = type_.bound
        if not isinstance(type_, ArrayOf):
            raise Untranslatable("a function of arrays with another argument", is_fault=type_ != JSON)
        if item is not None and unify(type_.item.type, item) is None:
            raise Untranslatable("an array with items of another type", is_fault=resolve(type_.item.type) != JSON)
        array = self.expressions.need(replace(term, type=type_))
        if item is None or not type_.item.is_optional:
            return array
        name = self.expressions.item_name("each")
        return Term(f"[require({name}) FOR {name} IN {array.at(COMPARE)}]", ArrayOf(Slot(item)))

    def _range(self, node: Interval) -> Term:
        low, high = self._whole(node.left), self._whole(node.right)
        start = low if node.has_left else f"{low} + 1"
        end = f"{high} + 1" if node.has_right else high
        return Term(f"[to_decimal(n) FOR n IN range({start}, {end})]", ArrayOf(Slot(NUMBER)))

    def _whole(self, node: Node) -> str:
        if isinstance(node, Number) and node.text.isdigit():
            return node.text
        term = self._need(node, NUMBER)
        return term.text if term.is_integer else f"to_integer({term.text})"


class Dates(Arguments):
    """Translates functions and methods of dates."""

    def _date(self, arguments: tuple[Node, ...]) -> Term:
        if len(arguments) == 1 and arguments[0] == String("now"):
            self.expressions.uses.add("now")
            return Term("epoch_seconds(now())", NUMBER, is_integer=True)
        term = self.expressions.need(self._only(arguments))
        if resolve(term.type) == NUMBER:
            return Term(f"round({term.text}, 0, down)", NUMBER)
        term = self.expressions.need(term, TEXT)
        self.expressions.uses.add("zen_date")
        return Term(f"epoch_seconds(zen_date({term.text}))", NUMBER, is_integer=True)

    def _moment(self, arguments: tuple[Node, ...]) -> Term:
        if not arguments:
            self.expressions.uses.add("now")
            return Term("now()", MOMENT)
        term = self.expressions.need(self._only(arguments))
        if resolve(term.type) == MOMENT:
            return term
        if resolve(term.type) == NUMBER:
            return Term(f"from_epoch_seconds({self._integer(term)})", MOMENT)
        self.expressions.uses.add("zen_date")
        return Term(f"zen_date({self.expressions.need(term, TEXT).text})", MOMENT)

    def _integer(self, term: Term) -> str:
        return term.text if term.is_integer or term.text.isdigit() else f"to_integer({term.text})"

    def _moment_of(self, node: Node) -> Term:
        """Return an argument of a date function: text, seconds or a moment."""
        if node == String("now"):
            return self._moment(())
        return self._moment((node,))

    def _part(self, name: str, arguments: tuple[Node, ...]) -> Term:
        if len(arguments) != 1:
            raise Untranslatable("a date function without its one argument", is_fault=True)
        moment = self._moment_of(arguments[0])
        return Term(f"{name}({_for_part(name, moment.text)})", NUMBER, is_integer=True)

    def _part_name(self, part: str, names: str, arguments: tuple[Node, ...]) -> Term:
        return Term(f"{names}[{self._part(part, arguments).text} - 1]", TEXT)

    def _date_string(self, arguments: tuple[Node, ...]) -> Term:
        moment = self._moment_of(arguments[0]) if len(arguments) == 1 else Term("", NOTHING)
        if not moment.text:
            raise Untranslatable("`dateString` without its argument", is_fault=True)
        return Term(f"replace(slice(text({moment.text}), 0, 19), 'T', ' ')", TEXT)

    def _time(self, arguments: tuple[Node, ...]) -> Term:
        if len(arguments) != 1 or not isinstance(arguments[0], String):
            raise Untranslatable("`time` of a value that is computed")
        parts = [int(part) for part in arguments[0].text.split(":") if part.isdigit()]
        if len(parts) != arguments[0].text.count(":") + 1 or not 1 <= len(parts) <= 3:
            raise Untranslatable(f"the time `{arguments[0].text}`")
        hours, minutes, seconds = [*parts, 0, 0][:3]
        return Term(str(hours * 3600 + minutes * 60 + seconds), NUMBER)

    def _duration(self, arguments: tuple[Node, ...]) -> Term:
        term = self.expressions.need(self._only(arguments))
        if resolve(term.type) == NUMBER:
            return term
        if not isinstance(arguments[0], String):
            raise Untranslatable("`duration` of a text that is computed")
        return Term(str(_seconds(arguments[0].text)), NUMBER)

    def _boundary(self, arguments: tuple[Node, ...], *, is_end: bool) -> Term:
        if len(arguments) != 2 or not isinstance(arguments[1], String):
            raise Untranslatable("a boundary of a unit that is computed")
        moment = self._boundary_of(self._moment_of(arguments[0]), arguments[1].text, is_end=is_end)
        return Term(f"epoch_seconds({moment.text})", NUMBER, is_integer=True)

    def _boundary_of(self, moment: Term, text: str, *, is_end: bool) -> Term:
        unit = _UNITS.get(text, "")
        if unit in ("days", "hours", "minutes", "seconds"):
            start = f"truncate({moment.text}, {unit[:-1]})"
            return Term(f"{start} + {unit}(1) - seconds(1)" if is_end else start, MOMENT, 6 if is_end else ATOM)
        day = f"to_date({moment.text})"
        if unit == "weeks":
            start = f"add_days({day}, 1 - weekday_number({day}))"
            after = f"add_days({start}, 7)"
        elif unit == "months":
            start, after = f"start_of_month({day})", f"add_days(end_of_month({day}), 1)"
        elif unit == "years":
            start, after = f"date(year({day}), 1, 1)", f"date(year({day}) + 1, 1, 1)"
        else:
            raise Untranslatable(f"the unit `{text}`", is_fault=True)
        return Term(
            f"to_timestamp({after}) - seconds(1)" if is_end else f"to_timestamp({start})", MOMENT, 6 if is_end else ATOM
        )

    def method(self, base: Node, name: str, arguments: tuple[Node, ...]) -> Term:
        """Return the translation of a method of a date."""
        moment = self._need(base, MOMENT)
        if name in ("add", "sub"):
            return self._shift_moment(moment, arguments, is_added=name == "add")
        if name in _COMPARED and len(arguments) in (1, 2):
            other = self._moment_of(arguments[0])
            if len(arguments) == 2:
                unit = arguments[1].text if isinstance(arguments[1], String) else ""
                moment, other = (self._boundary_of(each, unit, is_end=False) for each in (moment, other))
            return Term(f"{moment.at(COALESCE)} {_COMPARED[name]} {other.at(COALESCE)}", BOOLEAN, COMPARE)
        if name in ("startOf", "endOf") and len(arguments) == 1 and isinstance(arguments[0], String):
            return self._boundary_of(moment, arguments[0].text, is_end=name == "endOf")
        if name == "diff" and len(arguments) in (1, 2):
            return self._difference(moment, arguments)
        if name == "timestamp":
            return Term(f"round(to_decimal(epoch_microseconds({moment.text})) / 1000, 0, floor)", NUMBER)
        if name in _PARTS and not arguments:
            return Term(f"{_PARTS[name]}({moment.text})", NUMBER, is_integer=True)
        if name == "weekday" and not arguments:
            return Term(f"weekday_number(to_date({moment.text}))", NUMBER, is_integer=True)
        if name == "dayOfYear" and not arguments:
            return Term(f"day_of_year(to_date({moment.text}))", NUMBER, is_integer=True)
        raise Untranslatable(f"the method `{name}` of a date")

    def _shift_moment(self, moment: Term, arguments: tuple[Node, ...], *, is_added: bool) -> Term:
        if len(arguments) == 1 and isinstance(arguments[0], String):
            amount, unit = str(_seconds(arguments[0].text)), "seconds"
        elif len(arguments) == 2 and isinstance(arguments[1], String):
            amount, unit = self._whole(arguments[0]), _UNITS.get(arguments[1].text, "")
        else:
            raise Untranslatable("a duration that is computed")
        sign = "+" if is_added else "-"
        if unit in ("seconds", "minutes", "hours", "days"):
            return Term(f"{moment.at(6)} {sign} {unit}({amount})", MOMENT, 6)
        if unit == "weeks":
            return Term(f"{moment.at(6)} {sign} days(7 * {amount})", MOMENT, 6)
        if unit not in ("months", "years"):
            raise Untranslatable("a unit of time that zen does not have", is_fault=True)
        signed = amount if is_added else f"-{amount}"
        of_day = f"({moment.text} - truncate({moment.text}, day))"
        return Term(f"to_timestamp(add_{unit}(to_date({moment.text}), {signed})) + {of_day}", MOMENT, 6)

    def _difference(self, moment: Term, arguments: tuple[Node, ...]) -> Term:
        other = self._moment_of(arguments[0])
        unit = _UNITS.get(arguments[1].text, "") if len(arguments) == 2 and isinstance(arguments[1], String) else ""
        milliseconds = {
            "": 1,
            "seconds": 1000,
            "minutes": 60_000,
            "hours": 3_600_000,
            "days": 86_400_000,
            "weeks": 604_800_000,
        }
        if unit not in milliseconds:
            raise Untranslatable("a difference in months or years")
        micro = f"total_microseconds({moment.at(6)} - {other.at(7)})"
        return Term(f"quot({micro}, {milliseconds[unit] * 1000})", NUMBER, is_integer=True)


def _for_part(name: str, moment: str) -> str:
    return f"to_date({moment})" if name in ("weekday_number", "day_of_year") else moment


def _seconds(text: str) -> int:
    """Return the seconds of a duration such as `1h 30m`."""
    seconds = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
    parts = re.findall(
        r"\s*([0-9]+)\s*(s|sec|secs|seconds?|m|min|mins|minutes?|h|hr|hrs|hours?|d|days?|w|weeks?)\b", text
    )
    if not parts or re.sub(r"[\s0-9a-z]", "", text):
        raise Untranslatable(f"the duration `{text}`")
    return sum(int(number) * seconds[unit[0]] for number, unit in parts)
