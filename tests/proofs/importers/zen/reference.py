"""A small evaluator of JSON decision models, written from zen's rules: values without types, errors as exceptions.

It shares the parser with the importer and nothing else. Functions are those that the random models use.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import Any

from vesper.importers.zen.parser import parse_cell, parse_expression
from vesper.importers.zen.syntax import (
    Array,
    Binary,
    Boolean,
    Call,
    Conditional,
    Interval,
    Member,
    Name,
    Node,
    Null,
    Number,
    Object,
    Pointer,
    String,
    Template,
    Unary,
    ZenSyntaxError,
)

_EXACT = decimal.Context(prec=34, rounding=decimal.ROUND_HALF_EVEN)


class ZenError(Exception):
    """An evaluation that zen ends with an error."""


def evaluate(model: dict[str, Any], data: Any) -> Any:
    """Return the result of a model for an input."""
    nodes = {node["id"]: node for node in model["nodes"]}
    edges = [(edge["sourceId"], edge["targetId"], edge.get("sourceHandle")) for edge in model["edges"]]
    results: dict[str, Any] = {}
    switched: set[str] = set()
    alive = set(nodes)

    def incoming(node: str) -> Any:
        merged: Any = {}
        for source, target, _ in reversed(edges):
            if target == node and source in results:
                merged = merge(merged, results[source])
        return merged

    def remove(edge: tuple[str, str, str | None]) -> None:
        if edge not in edges:
            return
        edges.remove(edge)
        source, target, _ = edge
        for node, at in ((target, 1), (source, 0)):
            if not any(each[at] == node for each in edges):
                for other in [each for each in edges if each[1 - at] == node]:
                    remove(other)
                if not any(node in each[:2] for each in edges):
                    alive.discard(node)

    visited: list[str] = []
    while True:
        ready = [
            node
            for node in nodes
            if node in alive and node not in visited and _is_reached(node, nodes, edges)
            and all(source in visited for source, target, _ in edges if target == node)
        ]  # fmt: skip
        if not ready:
            break
        node = ready[0]
        visited.append(node)
        kind, content = nodes[node]["type"], nodes[node].get("content")
        if kind == "switchNode" and node not in switched:
            switched.add(node)
            scope = incoming(node)
            valid: list[str] = []
            for statement in content["statements"]:
                if _is_true(statement["condition"], scope):
                    valid.append(statement["id"])
                    if content["hitPolicy"] == "first":
                        break
            dead = [edge for edge in edges if edge[0] == node and edge[2] not in valid]
            for edge in dead:
                remove(edge)
            if dead:
                visited.clear()
                continue
        if node in results:
            continue
        scope = data if kind == "inputNode" else incoming(node)
        results[node] = scope if kind in ("inputNode", "outputNode", "switchNode") else _run(kind, content, scope)
    final: Any = {}
    for node in nodes:
        if node in alive and node in visited and not any(edge[0] == node for edge in edges) and node in results:
            final = merge(final, results[node])
    return final


def _is_reached(node: str, nodes: dict[str, Any], edges: list[tuple[str, str, str | None]]) -> bool:
    return nodes[node]["type"] == "inputNode" or any(target == node for _, target, _ in edges)


def _is_true(text: str, scope: Any) -> bool:
    if not text:
        return True
    try:
        return Evaluation(scope).value(parse_expression(text)) is True
    except (ZenError, ZenSyntaxError):
        return False


def _run(kind: str, content: dict[str, Any], scope: Any) -> Any:
    run = _expressions if kind == "expressionNode" else _table
    source = Evaluation(scope).value(parse_expression(content["inputField"])) if content.get("inputField") else scope
    passes = content.get("passThrough") is True
    if content.get("executionMode") == "loop":
        if not isinstance(source, list):
            raise ZenError("expected an array")
        output: Any = [merge(item, run(content, item)) if passes else run(content, item) for item in source]
    else:
        output = run(content, source)
    if content.get("outputPath"):
        wrapped: dict[str, Any] = {}
        insert(wrapped, content["outputPath"], output)
        output = wrapped
    return merge(scope, output) if passes else output


def _expressions(content: dict[str, Any], scope: Any) -> Any:
    output: dict[str, Any] = {}
    for entry in content["expressions"]:
        if entry["key"] and entry["value"]:
            value = Evaluation(scope, output).value(parse_expression(entry["value"]))
            insert(output, entry["key"], value)
    return output


def _table(content: dict[str, Any], scope: Any) -> Any:
    found = []
    for rule in content["rules"]:
        try:
            row = _row(content, rule, scope)
        except (ZenError, ZenSyntaxError):
            continue
        if row is not None:
            if content["hitPolicy"] == "first":
                return row
            found.append(row)
    return found if content["hitPolicy"] == "collect" else None


def _row(content: dict[str, Any], rule: dict[str, str], scope: Any) -> Any:
    for column in content["inputs"]:
        cell = rule.get(column["id"], "")
        if not cell.strip():
            continue
        if not column.get("field"):
            if Evaluation(scope).value(parse_expression(cell)) is not True:
                return None
            continue
        value = Evaluation(scope).value(parse_expression(column["field"]))
        if Evaluation(scope, value).value(parse_cell(cell)) is not True:
            return None
    output: dict[str, Any] = {}
    for column in content["outputs"]:
        cell = rule.get(column["id"], "")
        if cell.strip():
            insert(output, column["field"], Evaluation(scope).value(parse_expression(cell)))
    return output


def merge(older: Any, newer: Any, *, is_top: bool = True) -> Any:
    if is_top and isinstance(newer, list):
        return newer
    if is_top and not isinstance(newer, dict):
        return older
    if isinstance(older, dict) and isinstance(newer, dict):
        merged = dict(older)
        for key, value in newer.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = merge(merged.get(key), value, is_top=False)
        return merged
    return newer


def insert(target: dict[str, Any], path: str, value: Any) -> None:
    *heads, last = path.split(".")
    for head in heads:
        target = target.setdefault(head, {})
        if not isinstance(target, dict):
            return  # type: ignore[unreachable]
    target[last] = value


class Evaluation:
    """Evaluates expressions in a scope; `column` is the value of `$`."""

    def __init__(self, scope: Any, column: Any = None) -> None:
        self.scope = scope
        self.column = column
        self.items: list[tuple[str | None, Any]] = []

    def value(self, node: Node) -> Any:
        match node:
            case Null():
                return None
            case Boolean(value):
                return value
            case Number(text):
                return Decimal(text)
            case String(text):
                return text
            case Template(parts):
                return "".join(self._text(self.value(part)) for part in parts)
            case Array(items):
                return [self.value(item) for item in items]
            case Object(entries):
                return {self.value(key): self.value(value) for key, value in entries}
            case Name("$"):
                return self.column
            case Name(text):
                for alias, item in reversed(self.items):
                    if alias == text:
                        return item
                return self.scope.get(text) if isinstance(self.scope, dict) else None
            case Pointer():
                return self.items[-1][1]
            case Member(base, key):
                return self._member(self.value(base), self.value(key))
            case Conditional(test, then, otherwise):
                return self.value(then if self._boolean(self.value(test)) else otherwise)
            case Unary("not", operand):
                return not self._boolean(self.value(operand))
            case Unary("-", operand):
                return -self._number(self.value(operand))
            case Binary(operator, left, right):
                return self._binary(operator, left, right)
            case Call():
                return self._call(node)
        raise AssertionError(node)

    def _member(self, base: Any, key: Any) -> Any:
        if isinstance(base, dict) and isinstance(key, str):
            return base.get(key)
        if isinstance(base, list) and isinstance(key, Decimal):
            return base[int(key)] if 0 <= key < len(base) else None
        return None

    def _number(self, value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise ZenError("not a number")
        return Decimal(value)

    def _boolean(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ZenError("not a boolean")
        return value

    def _text(self, value: Any) -> str:
        match value:
            case None:
                return "null"
            case bool():
                return "true" if value else "false"
            case int() | Decimal():
                return f"{Decimal(value):f}"
            case str():
                return value
        raise ZenError("no text")

    def _binary(self, operator: str, left: Node, right: Node) -> Any:
        first = self.value(left)
        if operator == "??":
            return first if first is not None else self.value(right)
        if operator in ("and", "or"):
            if self._boolean(first) is (operator == "or"):
                return first
            return self._boolean(self.value(right))
        if operator in ("in", "not in"):
            found = self._is_in(first, right)
            return found if operator == "in" else not found
        second = self.value(right)
        if operator in ("==", "!="):
            return _is_equal(first, second) is (operator == "==")
        if operator == "+" and isinstance(first, str) and isinstance(second, str):
            return first + second
        a, b = self._number(first), self._number(second)
        match operator:
            case "<" | "<=" | ">" | ">=":
                return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]
            case "+" | "-" | "*":
                return {"+": a + b, "-": a - b, "*": a * b}[operator]
            case "/":
                return None if b == 0 else _EXACT.divide(a, b)
            case "%":
                if b == 0:
                    raise ZenError("division by zero")
                return a - b * (a / b).to_integral_value(decimal.ROUND_DOWN)
        raise AssertionError(operator)

    def _is_in(self, value: Any, right: Node) -> bool:
        if isinstance(right, Interval):
            low, high = self._number(self.value(right.left)), self._number(self.value(right.right))
            number = self._number(value)
            above = number >= low if right.has_left else number > low
            return above and (number <= high if right.has_right else number < high)
        found = self.value(right)
        if isinstance(found, dict) and isinstance(value, str):
            return value in found
        if not isinstance(found, list) or isinstance(value, list | dict):
            raise ZenError("no collection")
        return any(_is_equal(value, each) for each in found)

    def _call(self, node: Call) -> Any:
        if node.name in ("map", "filter", "some", "all", "none", "one", "count"):
            return self._closure(node)
        values = [self.value(each) for each in node.arguments]
        first = values[0] if values else None
        match node.name:
            case "len" if isinstance(first, str | list):
                return Decimal(len(first))
            case "contains" if isinstance(first, list):
                return any(_is_equal(each, values[1]) for each in first)
            case "contains" if isinstance(first, str) and isinstance(values[1], str):
                return values[1] in first
            case "upper" | "lower" | "trim" if isinstance(first, str):
                return {"upper": first.upper, "lower": first.lower, "trim": first.strip}[node.name]()
            case "startsWith" | "endsWith" if isinstance(first, str) and isinstance(values[1], str):
                return first.startswith(values[1]) if node.name == "startsWith" else first.endswith(values[1])
            case "abs":
                return abs(self._number(first))
            case "floor" | "ceil" | "round":
                modes = {"floor": decimal.ROUND_FLOOR, "ceil": decimal.ROUND_CEILING, "round": decimal.ROUND_HALF_UP}
                return self._number(first).to_integral_value(modes[node.name])
            case "sum" | "min" | "max" if isinstance(first, list):
                numbers = [self._number(each) for each in first]
                if node.name == "sum":
                    return sum(numbers, Decimal(0))
                if not numbers:
                    raise ZenError("empty array")
                return min(numbers) if node.name == "min" else max(numbers)
            case "string":
                return self._text(first)
            case "bool":
                return self._truth(first)
            case "type":
                return _type_name(first)
        raise ZenError(node.name)

    def _truth(self, value: Any) -> bool:
        match value:
            case None:
                return False
            case bool():
                return value
            case int() | Decimal():
                return value != 0
            case str():
                return value.strip() == "true" or value == ""
        return True

    def _closure(self, node: Call) -> Any:
        items = self.value(node.arguments[0])
        if not isinstance(items, list):
            raise ZenError("no array")
        kept, values = [], []
        for item in items:
            self.items.append((node.alias, item))
            try:
                value = self.value(node.arguments[1])
            finally:
                self.items.pop()
            values.append(value)
            if node.name != "map" and self._boolean(value):
                kept.append(item)
            # SEMANTICS: `some`, `all` and `none` stop at the first item that decides them.
            if (node.name in ("some", "none") and value is True) or (node.name == "all" and value is False):
                break
        match node.name:
            case "map":
                return values
            case "filter":
                return kept
            case "count":
                return Decimal(len(kept))
            case "one":
                return len(kept) == 1
            case "some":
                return bool(kept)
            case "none":
                return not kept
        return all(value is True for value in values)


def _is_equal(first: Any, second: Any) -> bool:
    if isinstance(first, list | dict) or isinstance(second, list | dict):
        return False
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    return (type(first) is type(second) and bool(first == second)) or (_is_number(first, second) and first == second)


def _is_number(*values: Any) -> bool:
    return all(isinstance(value, int | Decimal) and not isinstance(value, bool) for value in values)


def _type_name(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | Decimal():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"
