"""Static types of FEEL expressions, and the types of Vesper that hold their values.

FEEL is typed at run time; the translator infers types from item definitions and literals. `any` is a value whose kind
is known at run time only: a json. Times are durations since midnight, years-months durations whole months, and a date
and time is a timestamp that holds its local time, with the zone in the type.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from vesper.importers.writer import node_name

MAX_RECORD_FIELDS = 256


class Refusal(Exception):
    """An expression that is not translated, with the category and the reason."""

    def __init__(self, category: str, reason: str, at: int = -1) -> None:
        super().__init__(reason)
        self.category = category
        self.reason = reason
        self.at = at


def type_error(reason: str, at: int = -1) -> Refusal:
    """Return the refusal of an expression that is null in FEEL because of the types of its operands."""
    return Refusal("null by a type error", reason, at)


def unsupported(reason: str, at: int = -1) -> Refusal:
    """Return the refusal of a part of FEEL that has no translation."""
    return Refusal("not supported", reason, at)


@dataclass(frozen=True, slots=True)
class Ty:
    """A type: its kind, types of items or fields, names of fields."""

    kind: str
    items: tuple[Ty, ...] = ()
    names: tuple[str, ...] = ()
    is_nullable: bool = False
    zone: str = ""
    """Zone of a time or a date and time: empty for none, `Z`, an offset, or the name of a region.

    `OPEN` is an offset that is known at run time only, or none; `TEXT` is a value that is still the text of a caller.
    """

    def optional(self) -> Ty:
        """Return the type with null."""
        return self if self.is_nullable else replace(self, is_nullable=True)

    def required(self) -> Ty:
        """Return the type without null."""
        return replace(self, is_nullable=False) if self.is_nullable and self.kind != "null" else self

    @property
    def item(self) -> Ty:
        """The type of the items of a list."""
        return self.items[0]

    def field(self, name: str) -> Ty | None:
        """Return the type of a field of a context."""
        return dict(zip(self.names, self.items, strict=True)).get(name) if self.kind == "context" else None

    def describe(self) -> str:
        """Return the type in FEEL's words."""
        names = {
            "datetime": "date and time", "duration": "days and time duration", "period": "years and months duration",
            "any": "Any",
        }  # fmt: skip
        if self.kind == "list":
            return f"list<{self.item.describe()}>"
        return names.get(self.kind, self.kind)


OPEN = "*"
TEXT = "text"
NUMBER = Ty("number")
STRING = Ty("string")
BOOLEAN = Ty("boolean")
DATE = Ty("date")
TIME = Ty("time")
DATETIME = Ty("datetime")
DURATION = Ty("duration")
PERIOD = Ty("period")
ANY = Ty("any")
NULL = Ty("null", is_nullable=True)
NEVER = Ty("never")
"""Type of the items of an empty list."""


def list_of(item: Ty) -> Ty:
    """Return the type of a list."""
    return Ty("list", (item,))


def context_of(fields: dict[str, Ty]) -> Ty:
    """Return the type of a context."""
    return Ty("context", tuple(fields.values()), tuple(fields))


SIMPLE = {
    "number": NUMBER, "string": STRING, "boolean": BOOLEAN, "date": DATE, "time": TIME, "date and time": DATETIME,
    "dateTime": DATETIME, "days and time duration": DURATION, "dayTimeDuration": DURATION,
    "years and months duration": PERIOD, "yearMonthDuration": PERIOD, "Any": ANY, "any": ANY,
}  # fmt: skip


MOMENT = context_of({"local": DATETIME, "offset": DURATION.optional()})
"""A date and time with its offset: the time of its own clock, and the difference from UTC."""
CLOCK = context_of({"local": TIME, "offset": DURATION.optional()})
"""A time with its offset."""


def unify(left: Ty, right: Ty) -> Ty | None:
    """Return the type that holds the values of both; None where only a json would."""
    is_nullable = left.is_nullable or right.is_nullable
    if left.kind in ("null", "never"):
        found = right
    elif right.kind in ("null", "never"):
        found = left
    elif left.kind == right.kind == "list":
        item = unify(left.item, right.item)
        if item is None:
            return None
        found = list_of(item)
    elif left.kind == right.kind == "context":
        if set(left.names) != set(right.names):
            return None
        fields = {}
        for name, one in zip(left.names, left.items, strict=True):
            other = right.field(name)
            both = unify(one, other) if other is not None else None
            if both is None:
                return None
            fields[name] = both
        found = context_of(fields)
    elif left.kind == right.kind and left.zone == right.zone:
        found = left
    else:
        return None
    return found.optional() if is_nullable else found.required()


def fits_json(ty: Ty) -> bool:
    """Return whether a json represents the value distinctly from every other value of FEEL."""
    if ty.kind in ("number", "string", "boolean", "any", "null", "never"):
        return True
    return ty.kind in ("list", "context") and all(map(fits_json, ty.items))


def field_names(ty: Ty) -> dict[str, str]:
    """Return the inside name of each field of a context."""
    taken: dict[str, str] = {}
    found = {}
    for name in ty.names:
        inside = node_name(name, taken)
        taken[inside] = name
        found[name] = inside
    return found


class Records:
    """Named record types of a node: one for each structure of a context."""

    def __init__(self) -> None:
        self._names: dict[Ty, str] = {}
        self._hints: dict[Ty, str] = {}
        self._taken: set[str] = set()
        self.suggest(MOMENT, "moment")
        self.suggest(CLOCK, "clock_time")

    def suggest(self, ty: Ty, name: str) -> None:
        """Prefer a name for a structure: that of its item definition."""
        self._hints.setdefault(ty.required(), name)

    def name(self, ty: Ty) -> str:
        """Return the name of the record type of a context, which the node then declares."""
        key = ty.required()
        if key not in self._names:
            if len(ty.names) > MAX_RECORD_FIELDS or not ty.names:
                raise unsupported("a context has 1 to 256 entries")
            for item in ty.items:
                self.written(item)  # inner records are declared first
            words = node_name(self._hints.get(key, "context")).split("_")
            base = "".join(word.capitalize() for word in words)[:48]
            unique, number = base, 2
            while unique in self._taken:
                unique, number = f"{base}{number}", number + 1
            self._taken.add(unique)
            self._names[key] = unique
        return self._names[key]

    def written(self, ty: Ty) -> str:
        """Return the type of Vesper as text."""
        if ty.is_nullable and ty.kind != "null":
            return f"optional<{self.written(ty.required())}>"
        if ty.zone == TEXT:
            return "string"
        if ty.zone == OPEN:
            return self.name(MOMENT if ty.kind == "datetime" else CLOCK)
        match ty.kind:
            case "number":
                return "decimal"
            case "time" | "duration":
                return "duration"
            case "period":
                return "integer"
            case "datetime":
                return "timestamp"
            case "string" | "boolean" | "date":
                return ty.kind
            case "any":
                return "json"
            case "list":
                item = ty.item
                return f"array<{self.written(BOOLEAN if item.kind == 'never' else item)}>"
            case "context":
                return self.name(ty)
            case "null":
                return "optional<boolean>"
        raise unsupported(f"a {ty.describe()} is no value of a node")

    def declarations(self) -> dict[str, Ty]:
        """Return the declared record types by name, inner ones first."""
        return {name: ty for ty, name in self._names.items()}
