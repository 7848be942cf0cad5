"""Random steps with effects: their fields, result types, failure codes and capabilities.

There are one or two shapes of each effect that needs no database or provider; completions come from
`vesper.verify.inputs.responses`.
"""

from __future__ import annotations

from collections.abc import Callable

from vesper.values.generated.effects import INTERRUPT_KINDS
from vesper.values.types import (
    BOOLEAN,
    DECIMAL,
    DURATION,
    INTEGER,
    JSON,
    STRING,
    TIMESTAMP,
    ArrayOf,
    OptionalOf,
    Type,
    optional,
)
from vesper.verify.programs.expressions import Expressions
from vesper.verify.programs.terms import Scope, Term
from vesper.verify.programs.text import Tree, scalar
from vesper.verify.programs.types import type_text

_ALWAYS = ("timeout", "unavailable")
"""Failure codes of every effect."""
_SENT = (INTEGER, STRING, BOOLEAN, DECIMAL)
DrawnRequest = tuple[dict[str, Tree], Type, tuple[str, ...]]


class Effects:
    def __init__(self, expressions: Expressions, template: Callable[[Scope], Term]) -> None:
        self._draw = expressions
        self._random = expressions.random
        self._template = template
        self.capabilities: set[str] = set()

    def request(self, scope: Scope, may_wait: bool = True) -> DrawnRequest:
        """Draw a step: its fields, the type of its value, and its failure codes."""
        ways = {
            "effect small": (2.0, self._small),
            "effect query": (1.0, self._query),
            "effect write": (1.0, self._write),
            "effect cache": (1.0, self._cache),
            "effect publish": (1.0, self._publish),
            "effect custom": (1.0, self._custom),
            "effect call": (1.0, self._call),
        }
        if may_wait:
            ways["effect wait"] = (1.0, self._wait)
        weights = self._draw.features.weights({name: weight for name, (weight, _) in ways.items()})
        (way,) = self._random.choices([draw for _, draw in ways.values()], weights)
        return way(scope)

    def _add_capability(self, capability: str) -> None:
        self.capabilities.add(capability)

    def _draw_value(self, scope: Scope, *types: Type) -> Term:
        return self._draw.expression(self._random.choice(types or _SENT), scope, 1)

    def _given_type(self) -> Type:
        """Draw the declared type of a response."""
        found = self._random.choice(self._draw.pool)
        return found.inner if isinstance(found, OptionalOf) else found

    def _small(self, scope: Scope) -> DrawnRequest:
        match self._random.choice(("clock", "random", "uuid", "now", "secret")):
            case "clock":
                self._add_capability("clock.read.system")
                return {"operation": "clock"}, TIMESTAMP, _ALWAYS
            case "uuid":
                self._add_capability("random.read.system")
                return {"operation": "uuid"}, STRING, _ALWAYS
            case "secret":
                self._add_capability("secrets.read.api_key")
                return {"operation": "secret", "name": "api_key"}, STRING, ("not_found", *_ALWAYS)
            case "now":
                # Not an effect, but `now()` is only allowed in node types with effects.
                return {"operation": "compute", "value": Term(TIMESTAMP, ("now()",))}, TIMESTAMP, ()
            case _:
                self._add_capability("random.read.system")
                fields: dict[str, Tree] = {"operation": "random", "min": Term(INTEGER, ("1",))}
                return (
                    fields | {"max": self._draw.assignable(INTEGER, scope, 1)},
                    INTEGER,
                    ("invalid_argument", *_ALWAYS),
                )

    def _query(self, scope: Scope) -> DrawnRequest:
        self._add_capability("database.read.items")
        type_, text = self._random.choice(
            ((ArrayOf(INTEGER), "array<integer>"), (OptionalOf(STRING), "optional<string>"), (DECIMAL, "decimal"))
        )
        fields: dict[str, Tree] = {
            "operation": "database_query",
            "query": "SELECT amount FROM items WHERE owner = :owner AND qty > :least",
            "bind": {"owner": self._draw_value(scope, STRING), "least": self._draw_value(scope, INTEGER)},
            "returns": text,
        }
        return fields, type_, ("bad_response", *_ALWAYS)

    def _write(self, scope: Scope) -> DrawnRequest:
        self._add_capability("database.write.items")
        fields: dict[str, Tree] = {"operation": "database_write", "table": "items"}
        fields["data"] = {"owner": self._draw_value(scope, STRING), "qty": self._draw_value(scope, INTEGER)}
        return fields, INTEGER, ("conflict", *_ALWAYS)

    def _cache(self, scope: Scope) -> DrawnRequest:
        fields: dict[str, Tree] = {"operation": "cache", "cache": "prices", "key": self._draw_value(scope, STRING)}
        if self._random.random() < 0.5:
            self._add_capability("cache.write.prices")
            value = self._draw.expression(self._given_type(), scope, 1)
            return fields | {"action": "put", "value": value, "ttl": "60s"}, BOOLEAN, _ALWAYS
        self._add_capability("cache.read.prices")
        type_ = self._given_type()
        return fields | {"action": "get", "returns": scalar(type_text(type_))}, optional(type_), _ALWAYS

    def _publish(self, scope: Scope) -> DrawnRequest:
        self._add_capability("events.publish.orders.done")
        fields: dict[str, Tree] = {"operation": "event_publish", "topic": "orders.done"}
        fields["payload"] = {"note": self._template(scope), "plain": "word"}
        if self._random.random() < 0.5:
            fields |= {"effect": "keyed", "key": self._draw.assignable(STRING, scope, 1)}
        return fields, STRING, _ALWAYS

    def _custom(self, scope: Scope) -> DrawnRequest:
        self._add_capability("effect.call.score")
        type_ = self._given_type()
        fields: dict[str, Tree] = {"operation": "custom", "name": "score"}
        fields["request"] = {
            "who": self._draw_value(scope),
            "what": self._draw.expression(self._given_type(), scope, 1),
        }
        return fields | {"returns": scalar(type_text(type_))}, type_, ("effect_failed", *_ALWAYS)

    def _call(self, scope: Scope) -> DrawnRequest:
        self._add_capability("network.http_client.shop")
        fields: dict[str, Tree] = {"operation": "external_api_call", "provider": "shop"}
        fields["endpoint"] = Term(STRING, ("/v1/{", self._draw_path_part(scope), "}"))
        if self._random.random() < 0.5:
            fields |= {"method": "GET", "query": {"page": self._draw_value(scope, INTEGER)}}
        else:
            fields |= {"method": "POST", "body": {"text": self._template(scope), "parts": [self._template(scope), "x"]}}
        if self._random.random() < 0.5:
            return fields, JSON, ("http_404", "http_5xx", "http_error", "bad_response", *_ALWAYS)
        type_ = self._given_type()
        return fields | {"expect": scalar(type_text(type_))}, type_, ("http_error", "bad_response", *_ALWAYS)

    def _wait(self, scope: Scope) -> DrawnRequest:
        fields: dict[str, Tree] = {"operation": self._random.choice(("sleep", "wait_for", "interrupt"))}
        length = "90m" if self._random.random() < 0.5 else self._draw_value(scope, DURATION)
        if fields["operation"] == "sleep":
            self._add_capability("clock.sleep.system")
            is_long = self._random.random() < 0.5
            fields |= {"duration": length} if is_long else {"until": self._draw_value(scope, TIMESTAMP)}
            return fields, TIMESTAMP, ("cancelled", "invalid_argument", *_ALWAYS)
        type_ = self._given_type()
        returns = scalar(type_text(type_))
        if fields["operation"] == "wait_for":
            self._add_capability("signals.receive.settled")
            fields |= {"signal": "settled", "match": self._draw_value(scope, STRING), "timeout": length}
            return fields | {"returns": returns}, type_, ("cancelled", *_ALWAYS)
        kind = self._random.choice(tuple(INTERRUPT_KINDS))
        self._add_capability(f"interrupts.raise.{kind}")
        fields |= {"kind": kind, "message": self._template(scope)}
        if kind != "checkpoint":
            fields["ttl"] = length
        if not INTERRUPT_KINDS[kind].is_answered and self._random.random() < 0.5:
            return fields, OptionalOf(STRING), ("expired", "cancelled", *_ALWAYS)
        return fields | {"returns": returns}, type_, ("expired", "cancelled", *_ALWAYS)

    def _draw_path_part(self, scope: Scope) -> Term:
        found = self._draw_value(scope, INTEGER, STRING)
        return found if not set(str(found)) & set("{}\n") else Term(INTEGER, ("7",))
