"""Preconditions of random shape around a planted solution.

Inputs are drawn first, then clauses that hold for them. So every drawn node has a solution, and the drawing of clauses
knows nothing of the solver.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

PATTERNS: dict[str, Callable[[random.Random], str]] = {
    "^[A-Z]{2}[0-9]{2}[A-Z0-9]{10,20}$": lambda r: _upper(r, 2) + _digits(r, 2) + _digits(r, r.randint(10, 20)),
    "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$": lambda r: "-".join(
        _hex(r, n) for n in (8, 4, 4, 4, 12)
    ),
    "^[0-9]{4}-(0[1-9]|1[0-2])-[0-3][0-9]$": lambda r: (
        f"{r.randint(1900, 2100)}-{r.randint(1, 12):02}-{r.randint(1, 28):02}"
    ),
    "^(ord|inv)_[a-z0-9]{8}$": lambda r: r.choice(("ord_", "inv_")) + _hex(r, 8),
    "^[A-Z][a-z]+( [A-Z][a-z]+)*$": lambda r: " ".join(_upper(r, 1) + _lower(r, r.randint(1, 6)) for _ in range(2)),
    "^[a-z.]+@[a-z]+[.](com|org|de)$": lambda r: f"{_lower(r, 5)}@{_lower(r, 4)}.{r.choice(('com', 'org', 'de'))}",
    "^-?[0-9]+([.][0-9]{2})?$": lambda r: f"{r.randint(-999, 999)}.{r.randint(0, 99):02}",
    "[0-9]{3}": lambda r: _lower(r, 2) + _digits(r, 3) + _lower(r, 1),
}
MEMBERS = ("open", "paid", "late", "gone")
NAMES = ("a", "b", "c", "d", "e", "f")


def _upper(source: random.Random, count: int) -> str:
    return "".join(source.choice(string.ascii_uppercase) for _ in range(count))


def _lower(source: random.Random, count: int) -> str:
    return "".join(source.choice(string.ascii_lowercase) for _ in range(count))


def _digits(source: random.Random, count: int) -> str:
    return "".join(source.choice(string.digits) for _ in range(count))


def _hex(source: random.Random, count: int) -> str:
    return "".join(source.choice("0123456789abcdef") for _ in range(count))


@dataclass
class Planted:
    """A node with preconditions that its planted inputs meet."""

    inputs: dict[str, Any]
    types: dict[str, str]
    clauses: list[str] = field(default_factory=list)
    shapes: list[str] = field(default_factory=list)

    def text(self) -> str:
        quoted = "\n".join(f'    - "{each}"' for each in (_quoted(clause) for clause in self.clauses))
        return (
            "node_id: planted_v1\ntype: function\nintent: Have preconditions\n"
            "types:\n  Line: {fields: {sku: string, qty: integer, price: decimal, since: date}}\n"
            "inputs:\n" + "".join(f'  {name}: "{type_}"\n' for name, type_ in self.types.items()) + "outputs:\n"
            "  success: {done: boolean}\n"
            f"contracts:\n  preconditions:\n{quoted}\n"
            "flow:\n  - operation: return\n    success: {done: true}\n"
        )


def _quoted(clause: str) -> str:
    return clause.replace("\\", "\\\\").replace('"', '\\"')


class Shapes:
    """Draws clauses that hold for planted inputs."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.inputs: dict[str, Any] = {}
        self.types: dict[str, str] = {}

    def draw(self) -> Planted:
        for name in NAMES[: self.random.randint(2, 6)]:
            type_ = self.random.choice(list(_TYPES))
            self.types[name], self.inputs[name] = type_, _TYPES[type_](self.random)
        self._relate()
        planted = Planted(self.inputs, self.types)
        for _ in range(self.random.choice((1, 1, 2, 2, 3, 3, 4, 5, 6))):
            shape, clause = self.clause()
            planted.shapes.append(shape)
            planted.clauses.append(clause)
        return planted

    def _relate(self) -> None:
        """Let some inputs be equal, so that equalities between them hold."""
        for name in list(self.inputs):
            others = [each for each in self.inputs if each != name and self.types[each] == self.types[name]]
            if others and self.random.random() < 0.2:
                self.inputs[name] = self.inputs[self.random.choice(others)]

    def clause(self, depth: int = 0) -> tuple[str, str]:
        """Return the name of a shape, and a clause of it that holds."""
        shapes = [each for each in SHAPES if depth < 2 or each not in NESTED]
        while True:
            shape = self.random.choice(shapes)
            clause = SHAPES[shape](self, depth)
            if clause is not None:
                return shape, clause

    def names(self, *types: str) -> list[str]:
        found = [name for name, type_ in self.types.items() if type_ in types]
        self.random.shuffle(found)
        return found

    def slack(self) -> int:
        return self.random.choice((0, 0, 1, 2, 5, 20, 100, 1000))

    def bounds(self, value: int | Decimal, text: str) -> str:
        """Return a comparison with a constant that a number meets."""
        slack = self.slack()
        options = [f"{text} >= {value - slack}", f"{text} <= {value + slack}", f"{text} < {value + slack + 1}"]
        options += [f"{text} > {value - slack - 1}", f"{value - slack} <= {text} AND {text} <= {value + slack}"]
        return self.random.choice([*options, f"{text} == {value}", f"{text} != {value + slack + 1}"])


def _compare_with_constant(shapes: Shapes, _: int) -> str | None:
    names = shapes.names("integer", "decimal")
    return shapes.bounds(shapes.inputs[names[0]], names[0]) if names else None


def _relation(left: Any, right: Any, source: random.Random) -> str:
    if left == right:
        return source.choice(("==", "<=", ">="))
    return source.choice(("!=", "<", "<=") if left < right else ("!=", ">", ">="))


def _compare_inputs(shapes: Shapes, _: int) -> str | None:
    for type_ in shapes.random.sample(["integer", "decimal", "date", "timestamp", "duration", "string"], 6):
        names = shapes.names(type_)
        if len(names) > 1:
            first, second = names[:2]
            sign = _relation(shapes.inputs[first], shapes.inputs[second], shapes.random)
            return f"{first} {sign} {second}"
    return None


def _chain(shapes: Shapes, _: int) -> str | None:
    for type_ in shapes.random.sample(["integer", "decimal", "date", "timestamp"], 4):
        names = sorted(shapes.names(type_), key=lambda name: shapes.inputs[name])
        if len(names) > 1:
            pairs = pairwise(names)
            parts = [
                f"{left} {'<' if shapes.inputs[left] < shapes.inputs[right] else '<='} {right}" for left, right in pairs
            ]
            if type_ in ("integer", "decimal"):
                parts.insert(0, f"{shapes.inputs[names[0]] - shapes.slack() - 1} < {names[0]}")
            return " AND ".join(parts)
    return None


def _linear(shapes: Shapes, _: int) -> str | None:
    names = shapes.names(shapes.random.choice(("integer", "decimal")))
    if not names:
        return None
    used = names[: shapes.random.randint(1, 3)]
    factors = [shapes.random.choice((1, 1, 1, 2, 3, -1, -2)) for _ in used]
    total = sum(factor * shapes.inputs[name] for factor, name in zip(factors, used, strict=True))
    text = " + ".join(
        name if factor == 1 else f"({factor}) * {name}" for factor, name in zip(factors, used, strict=True)
    )
    return shapes.bounds(total, text)


def _length(shapes: Shapes, _: int) -> str | None:
    names = shapes.names("string", "array<integer>", "array<Line>", "set<string>", "map<string, integer>")
    return shapes.bounds(len(shapes.inputs[names[0]]), f"length({names[0]})") if names else None


def _member(shapes: Shapes, _: int) -> str | None:
    names = shapes.names("string", "integer", "enum")
    if not names:
        return None
    value, type_ = shapes.inputs[names[0]], shapes.types[names[0]]
    others: list[Any] = ["x", "yy", "zzz"] if type_ == "string" else [1, 2, 30_000]
    others = [each for each in (list(MEMBERS) if type_ == "enum" else others) if each != value]
    is_in = shapes.random.random() < 0.6
    listed = shapes.random.sample([*others[:2], value], 3) if is_in else others[:2]
    shown = ", ".join(f"'{each}'" if type_ == "string" else str(each) for each in listed)
    return f"{names[0]} IN [{shown}]" if is_in else f"NOT ({names[0]} IN [{shown}])"


def _format(shapes: Shapes, _: int) -> str | None:
    names = shapes.names("string")
    if not names:
        return None
    name, value = names[0], shapes.inputs[names[0]]
    from vesper.kernels import regex

    fitting = [each for each in PATTERNS if regex.matches(value, each)]
    half = len(value) // 2
    options = [f"matches({name}, '{each}')" for each in fitting]
    options += [f"starts_with({name}, '{value[:half]}')", f"ends_with({name}, '{value[half:]}')"]
    options += [f"{name} CONTAINS '{value[1:half]}'", f"NOT ({name} CONTAINS '#')"]
    if len(value) >= 2:
        options += [f"slice({name}, 0, 2) == '{value[:2]}'", f"upper(slice({name}, 0, 1)) == '{value[0].upper()}'"]
    if "-" in value:
        parts = value.split("-")
        options += [f"length(split({name}, '-')) == {len(parts)}", f"split({name}, '-')[0] == '{parts[0]}'"]
    if value == value.lower():
        options.append(f"lower({name}) == {name}")
    return shapes.random.choice(options)


def _sum(shapes: Shapes, _: int) -> str | None:
    names = shapes.names("array<integer>", "array<Line>")
    if not names:
        return None
    name, value = names[0], shapes.inputs[names[0]]
    if shapes.types[name] == "array<integer>":
        return shapes.bounds(sum(value), f"SUM(x FOR x IN {name})")
    total = sum((each["qty"] * each["price"] for each in value), Decimal(0))
    decimals = [each for each in shapes.names("decimal") if shapes.inputs[each] >= total]
    if decimals and shapes.random.random() < 0.5:
        return f"SUM(l.qty * l.price FOR l IN {name}) <= {decimals[0]}"
    if shapes.random.random() < 0.5:
        return shapes.bounds(sum(each["qty"] for each in value), f"SUM(l.qty FOR l IN {name})")
    return shapes.bounds(total, f"SUM(l.qty * l.price FOR l IN {name})")


def _for_all(shapes: Shapes, _: int) -> str | None:
    names = shapes.names("array<integer>", "array<Line>")
    if not names:
        return None
    name, value = names[0], shapes.inputs[names[0]]
    if shapes.types[name] == "array<integer>":
        if value == sorted(value) and shapes.random.random() < 0.4:
            return f"FORALL i IN range(1, length({name})) SATISFIES {name}[i] >= {name}[i - 1]"
        low, high = min(value, default=0) - shapes.slack(), max(value, default=0) + shapes.slack()
        return f"FORALL x IN {name} SATISFIES x >= {low} AND x <= {high}"
    low = min((each["qty"] for each in value), default=1)
    most = max((each["qty"] * each["price"] for each in value), default=Decimal(1)) + shapes.slack()
    last = max((each["since"] for each in value), default=date(2024, 1, 1))
    options = [f"l.qty >= {low}", f"l.qty * l.price <= {most}", "length(l.sku) == 8"]
    options += [f"l.since <= date('{last}')", "matches(l.sku, '^[0-9a-f]{8}$')", "scale(l.price) <= 2"]
    chosen = shapes.random.sample(options, shapes.random.randint(1, 2))
    return f"FORALL l IN {name} SATISFIES {' AND '.join(chosen)}"


def _exists(shapes: Shapes, _: int) -> str | None:
    names = [each for each in shapes.names("array<integer>", "array<Line>") if shapes.inputs[each]]
    if not names:
        return None
    name, item = names[0], shapes.random.choice(shapes.inputs[names[0]])
    if shapes.types[name] == "array<integer>":
        return f"EXISTS x IN {name} SATISFIES {shapes.bounds(item, 'x')}"
    return f"EXISTS l IN {name} SATISFIES {shapes.bounds(item['qty'], 'l.qty')} AND l.price <= {item['price']}"


def _optional(shapes: Shapes, depth: int) -> str | None:
    names = shapes.names("optional<integer>")
    if not names:
        return None
    name, value = names[0], shapes.inputs[names[0]]
    if value is None:
        options = [f"{name} IS NULL", f"{name} IS NULL OR {name} > 5", f"({name} ?? 7) < 10"]
    else:
        options = [f"{name} IS NOT NULL", f"{name} IS NULL OR ({shapes.bounds(value, name)})"]
        options.append(shapes.bounds(value, f"({name} ?? {value})"))
    # Inside of another clause the name may be known not to be null, and `??` is an error there.
    return shapes.random.choice(options if depth == 0 else options[:1])


def _times(shapes: Shapes, _: int) -> str | None:
    days, moments, spans = shapes.names("date"), shapes.names("timestamp"), shapes.names("duration")
    options = []
    if days:
        value = shapes.inputs[days[0]]
        options += [
            f"{days[0]} <= date('{value + timedelta(days=shapes.slack())}')",
            f"year({days[0]}) == {value.year}",
        ]
        options += [f"month({days[0]}) >= {value.month}", f"weekday({days[0]}) == {value.strftime('%A').lower()}"]
    if len(days) > 1:
        first, second = sorted(days[:2], key=lambda name: shapes.inputs[name])
        gap = (shapes.inputs[second] - shapes.inputs[first]).days
        options.append(f"{first} <= {second} AND days_between({first}, {second}) <= {gap + shapes.slack()}")
    if len(moments) > 1:
        first, second = sorted(moments[:2], key=lambda name: shapes.inputs[name])
        seconds = int((shapes.inputs[second] - shapes.inputs[first]).total_seconds()) + 1 + shapes.slack()
        options.append(f"{second} - {first} <= seconds({seconds}) AND {first} <= {second}")
    if spans:
        seconds = int(shapes.inputs[spans[0]].total_seconds())
        options.append(f"{spans[0]} >= seconds({seconds - shapes.slack()}) AND {spans[0]} < seconds({seconds + 60})")
    return shapes.random.choice(options) if options else None


def _decimal_places(shapes: Shapes, _: int) -> str | None:
    names = shapes.names("decimal")
    if not names:
        return None
    name = names[0]
    integers = shapes.names("integer")
    options = [f"scale({name}) <= 2", f"round({name}, 2) == {name}"]
    if integers:
        product = shapes.inputs[name] * shapes.inputs[integers[0]]
        options.append(shapes.bounds(product, f"{name} * {integers[0]}"))
    return shapes.random.choice(options)


def _remainder(shapes: Shapes, _: int) -> str | None:
    names = shapes.names("integer")
    divisor = shapes.random.choice((2, 3, 5, 7, 10))
    return f"mod({names[0]}, {divisor}) == {shapes.inputs[names[0]] % divisor}" if names else None


def _keyed(shapes: Shapes, _: int) -> str | None:
    maps, sets, texts = shapes.names("map<string, integer>"), shapes.names("set<string>"), shapes.names("string")
    options = []
    if maps and shapes.inputs[maps[0]]:
        key, value = shapes.random.choice(list(shapes.inputs[maps[0]].items()))
        options += [f"'{key}' IN {maps[0]}", f"'{key}' IN {maps[0]} AND {shapes.bounds(value, f'{maps[0]}[{key!r}]')}"]
        low = min(shapes.inputs[maps[0]].values())
        options.append(f"FORALL k, v IN {maps[0]} SATISFIES v >= {low}")
    if sets and shapes.inputs[sets[0]]:
        member = shapes.random.choice(sorted(shapes.inputs[sets[0]]))
        options += [f"{sets[0]} CONTAINS '{member}'", f"NOT ({sets[0]} CONTAINS 'missing')"]
        options += [f"{each} IN {sets[0]}" for each in texts if shapes.inputs[each] in shapes.inputs[sets[0]]]
    return shapes.random.choice(options) if options else None


def _flag(shapes: Shapes, _: int) -> str | None:
    names = shapes.names("boolean", "enum")
    if not names:
        return None
    value = shapes.inputs[names[0]]
    if isinstance(value, bool):
        return names[0] if value else f"NOT {names[0]}"
    return shapes.random.choice((f"{names[0]} == {value}", *(f"{names[0]} != {m}" for m in MEMBERS if m != value)))


def _disjunction(shapes: Shapes, depth: int) -> str:
    parts = [f"({shapes.clause(depth + 1)[1]})", f"NOT ({shapes.clause(depth + 1)[1]})"]
    shapes.random.shuffle(parts)
    return " OR ".join(parts)


def _implication(shapes: Shapes, depth: int) -> str:
    premise, conclusion = shapes.clause(depth + 1)[1], shapes.clause(depth + 1)[1]
    if shapes.random.random() < 0.5:
        return f"({premise}) => ({conclusion})"
    return f"(NOT ({premise})) => NOT ({conclusion})"


def _condition(shapes: Shapes, depth: int) -> str:
    test, then, other = (shapes.clause(depth + 1)[1] for _ in range(3))
    if shapes.random.random() < 0.5:
        return f"IF {test} THEN {then} ELSE NOT ({other})"
    return f"IF NOT ({test}) THEN NOT ({other}) ELSE {then}"


SHAPES: dict[str, Callable[[Shapes, int], str | None]] = {
    "constant": _compare_with_constant,
    "inputs": _compare_inputs,
    "chain": _chain,
    "linear": _linear,
    "length": _length,
    "member": _member,
    "format": _format,
    "sum": _sum,
    "for_all": _for_all,
    "exists": _exists,
    "optional": _optional,
    "times": _times,
    "places": _decimal_places,
    "remainder": _remainder,
    "keyed": _keyed,
    "flag": _flag,
    "or": _disjunction,
    "implies": _implication,
    "if": _condition,
}
NESTED = ("or", "implies", "if")


def _line(source: random.Random) -> dict[str, Any]:
    return {
        "sku": _hex(source, 8),
        "qty": source.randint(1, 20),
        "price": Decimal(source.randint(1, 99_999)).scaleb(-2),
        "since": date(2020, 1, 1) + timedelta(days=source.randrange(3000)),
    }


def _text(source: random.Random) -> str:
    return PATTERNS[source.choice(list(PATTERNS))](source)


_TYPES: dict[str, Callable[[random.Random], Any]] = {
    "integer": lambda r: r.choice((r.randint(-10, 100), r.randint(-10, 100), r.randint(-(10**6), 10**6))),
    "decimal": lambda r: Decimal(r.randint(-(10**4), 10 ** r.randint(3, 7))).scaleb(-2),
    "string": _text,
    "boolean": lambda r: r.random() < 0.5,
    "enum": lambda r: r.choice(MEMBERS),
    "date": lambda r: date(2000, 1, 1) + timedelta(days=r.randrange(12_000)),
    "timestamp": lambda r: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=r.randrange(10**8)),
    "duration": lambda r: timedelta(seconds=r.randrange(10**5)),
    "optional<integer>": lambda r: None if r.random() < 0.4 else r.randint(0, 100),
    "array<integer>": lambda r: sorted(_integers(r)) if r.random() < 0.5 else _integers(r),
    "array<Line>": lambda r: [_line(r) for _ in range(r.randint(0, 4))],
    "set<string>": lambda r: frozenset(_lower(r, 3) for _ in range(r.randint(0, 4))),
    "map<string, integer>": lambda r: {_lower(r, 3): r.randint(0, 50) for _ in range(r.randint(0, 4))},
}


def _integers(source: random.Random) -> list[int]:
    return [source.randint(-20, 200) for _ in range(source.randint(0, 6))]


def draw_planted(seed: int) -> Planted:
    """Return the node of a seed."""
    planted = Shapes(seed).draw()
    shown = f"enum[{', '.join(MEMBERS)}]"
    planted.types = {name: shown if type_ == "enum" else type_ for name, type_ in planted.types.items()}
    return planted
