"""JSON form of a node's flow: statements, handlers, machines, callees, grants (docs/spec/ir.md)."""

from __future__ import annotations

from typing import Any

from vesper.language.ir.nodes import (
    Arm,
    Block,
    Branch,
    Callee,
    CallNode,
    Clause,
    Expression,
    Grants,
    Handler,
    Loop,
    LoopState,
    Machine,
    Parallel,
    Place,
    Raise,
    Request,
    Require,
    Return,
    Statement,
    Step,
)
from vesper.language.ir.statements import Policy
from vesper.language.ir.type_json import type_from_json, type_to_json
from vesper.policies.budget import Budget

# -- writing --------------------------------------------------------------------------------------


def block_to_json(block: Block) -> list[dict[str, Any]]:
    return [_statement(statement) for statement in block]


def _statement(statement: Statement) -> dict[str, Any]:
    match statement:
        case Step():
            return {"step": {"name": statement.name, "value": statement.value.index} | _handlers(statement.handlers)}
        case Return(values):
            return {"return": {"success": _named_values(values)}}
        case Raise(values):
            return {"raise": {"error": _named_values(values)}}
        case Require(clause):
            return {"require": {"holds": clause.holds.index}}
        case Branch():
            arms = [
                {"when": arm.when.index, "body": block_to_json(arm.body)} | _optional_part("value", arm.value)
                for arm in statement.arms
            ]
            form: dict[str, Any] = {"name": statement.name, "arms": arms, "else": block_to_json(statement.otherwise)}
            form |= _optional_part("otherwise", statement.otherwise_value)
            return {"branch": form | _handlers(statement.handlers)}
        case Loop():
            return {"loop": _loop(statement)}
        case Parallel():
            members = [block_to_json(member) for member in statement.members]
            return {"parallel": {"name": statement.name, "members": members} | _handlers(statement.handlers)}
        case Request():
            form = {
                "name": statement.name,
                "effect": statement.effect,
                "class": statement.effect_class,
                "fixed": dict(statement.fixed),
                "arguments": _named_values(statement.arguments),
                "result": statement.result.index,
                "policy": policy_to_json(statement.policy),
            }
            if statement.sensitive is not False:
                form["sensitive"] = statement.sensitive if statement.sensitive is True else list(statement.sensitive)
            return {"request": form | _optional_part("key", statement.key) | _handlers(statement.handlers)}
        case CallNode():
            form = {
                "name": statement.name,
                "node": statement.node,
                "inputs": _named_values(statement.inputs),
                "result": statement.result.index,
            }
            if statement.budgets:
                form["budgets"] = [each.to_json() for each in statement.budgets]
            return {"call": form | _handlers(statement.handlers)}


def _loop(loop: Loop) -> dict[str, Any]:
    form: dict[str, Any] = {
        "name": loop.name,
        "locals": list(loop.locals),
        "max": loop.max,
        "state": [{"local": s.local, "name": s.name, "value": s.value.index} for s in loop.state],
        "body": block_to_json(loop.body),
        "next": [{"local": local, "value": value.index} for local, value in loop.next],
    }
    for name, part in (
        ("over", loop.over),
        ("where", loop.where),
        ("while", loop.condition),
        ("collect", loop.collect),
        ("stop_when", loop.stop_when),
    ):
        form |= _optional_part(name, part)
    if loop.in_flight is not None:
        form["in_flight"] = loop.in_flight
    return form | _handlers(loop.handlers)


def _handlers(handlers: tuple[Handler, ...]) -> dict[str, Any]:
    return {
        "handlers": [
            {"codes": list(each.codes), "body": block_to_json(each.body)} | _optional_part("value", each.value)
            for each in handlers
        ]
    }


def _named_values(values: tuple[tuple[str, Expression], ...]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value.index} for name, value in values]


def _optional_part(key: str, expression: Expression | None) -> dict[str, Any]:
    return {} if expression is None else {key: expression.index}


def machine_to_json(machine: Machine) -> dict[str, Any]:
    return {
        "name": machine.name,
        "initial": machine.initial,
        "states": list(machine.states),
        "transitions": [list(pair) for pair in machine.transitions],
    }


def callee_to_json(callee: Callee) -> dict[str, Any]:
    def fields(listed: tuple[tuple[str, Any], ...]) -> list[dict[str, Any]]:
        return [{"name": name, "type": type_to_json(type_)} for name, type_ in listed]

    return {
        "node": callee.node,
        "hash": callee.semantic_hash,
        "inputs": [
            {"name": name, "type": type_to_json(type_), "optional": is_optional}
            for name, type_, is_optional in callee.inputs
        ],
        "success": fields(callee.success),
        "error": fields(callee.error),
    }


def grants_to_json(grants: Grants) -> dict[str, Any]:
    optional: dict[str, Any] = {"declassified": dict(grants.declassified)} if grants.declassified else {}
    if grants.audit_fields is not None:
        optional["audit_fields"] = grants.audit_fields
    return optional | {
        "capabilities": {"required": list(grants.required), "denied": list(grants.denied)},
        "policy": policy_to_json(grants.policy),
        "audit": grants.audit,
        "sensitive": list(grants.sensitive),
    }


def policy_to_json(policy: Policy) -> dict[str, Any]:
    return {
        key: [each.to_json() if isinstance(each, Budget) else each for each in value]
        if isinstance(value, tuple)
        else value
        for key, value in policy.items()
    }


# -- reading --------------------------------------------------------------------------------------


class FlowReader:
    """Rebuilds statements over a complete table of expressions."""

    def __init__(self, table: list[Expression], source: dict[str, Any]) -> None:
        self._table = table
        self._source = source

    def block(self, forms: list[dict[str, Any]]) -> Block:
        return tuple(self._statement(form) for form in forms)

    def _statement(self, form: dict[str, Any]) -> Statement:
        ((kind, body),) = form.items()
        match kind:
            case "step":
                return Step(body["name"], self._table[body["value"]], self._place(body), self._handlers(body))
            case "return":
                return Return(self._named_values(body["success"]))
            case "raise":
                return Raise(self._named_values(body["error"]))
            case "require":
                index = body["holds"]
                return Require(Clause(self._table[index], self._source["clauses"][str(index)]))
            case "branch":
                arms = tuple(
                    Arm(self._table[arm["when"]], self.block(arm["body"]), self._optional_part(arm, "value"))
                    for arm in body["arms"]
                )
                return Branch(
                    body["name"],
                    arms,
                    self.block(body["else"]),
                    self._optional_part(body, "otherwise"),
                    self._place(body),
                    self._handlers(body),
                )
            case "loop":
                return self._loop(body)
            case "parallel":
                members = tuple(self.block(member) for member in body["members"])
                return Parallel(body["name"], members, self._place(body), self._handlers(body))
            case "request":
                return Request(
                    body["name"],
                    body["effect"],
                    body["class"],
                    self._optional_part(body, "key"),
                    body["fixed"],
                    self._named_values(body["arguments"]),
                    self._table[body["result"]],
                    policy_from_json(body["policy"]),
                    self._place(body),
                    self._handlers(body),
                    _sensitive_from_json(body.get("sensitive", False)),
                )
            case "call":
                return CallNode(
                    body["name"],
                    body["node"],
                    self._named_values(body["inputs"]),
                    self._table[body["result"]],
                    self._place(body),
                    self._handlers(body),
                    _budgets_from_json(body.get("budgets", [])),
                )
            case _:
                raise KeyError(kind)

    def _loop(self, body: dict[str, Any]) -> Loop:
        numbers = tuple(body["locals"])
        return Loop(
            body["name"],
            numbers,
            tuple(self._source["locals"][number] for number in numbers),
            self._optional_part(body, "over"),
            self._optional_part(body, "where"),
            self._optional_part(body, "while"),
            body["max"],
            tuple(LoopState(each["local"], each["name"], self._table[each["value"]]) for each in body["state"]),
            self.block(body["body"]),
            self._optional_part(body, "collect"),
            tuple((each["local"], self._table[each["value"]]) for each in body["next"]),
            self._optional_part(body, "stop_when"),
            self._place(body),
            self._handlers(body),
            body.get("in_flight"),
        )

    def _place(self, body: dict[str, Any]) -> Place:
        return Place(*self._source["steps"][body["name"]])

    def _handlers(self, body: dict[str, Any]) -> tuple[Handler, ...]:
        return tuple(
            Handler(tuple(each["codes"]), self.block(each["body"]), self._optional_part(each, "value"))
            for each in body["handlers"]
        )

    def _named_values(self, forms: list[dict[str, Any]]) -> tuple[tuple[str, Expression], ...]:
        return tuple((each["name"], self._table[each["value"]]) for each in forms)

    def _optional_part(self, body: dict[str, Any], key: str) -> Expression | None:
        return self._table[body[key]] if key in body else None


def machine_from_json(form: dict[str, Any]) -> Machine:
    transitions = tuple((source, target) for source, target in form["transitions"])
    return Machine(form["name"], form["initial"], tuple(form["states"]), transitions)


def callee_from_json(form: dict[str, Any]) -> Callee:
    def fields(listed: list[dict[str, Any]]) -> tuple[tuple[str, Any], ...]:
        return tuple((each["name"], type_from_json(each["type"])) for each in listed)

    inputs = tuple((each["name"], type_from_json(each["type"]), each["optional"]) for each in form["inputs"])
    return Callee(form["node"], form["hash"], inputs, fields(form["success"]), fields(form["error"]))


def grants_from_json(form: dict[str, Any]) -> Grants:
    capabilities = form["capabilities"]
    return Grants(
        tuple(capabilities["required"]),
        tuple(capabilities["denied"]),
        form["audit"],
        tuple(form["sensitive"]),
        policy_from_json(form["policy"]),
        tuple(sorted(form.get("declassified", {}).items())),
        form.get("audit_fields"),
    )


def _sensitive_from_json(form: bool | list[str]) -> bool | tuple[str, ...]:
    return form if isinstance(form, bool) else tuple(form)


def policy_from_json(form: dict[str, Any]) -> Policy:
    found: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in form.items()}
    if "budgets" in form:
        found["budgets"] = _budgets_from_json(form["budgets"])
    return found


def _budgets_from_json(forms: list[dict[str, Any]]) -> tuple[Budget, ...]:
    return tuple(Budget.from_json(each) for each in forms)


def statement_forms(forms: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return every statement of a body with its kind, including nested ones."""
    found: list[tuple[str, dict[str, Any]]] = []
    waiting = list(reversed(forms))
    while waiting:
        ((kind, body),) = waiting.pop().items()
        found.append((kind, body))
        inner = [form for arm in body.get("arms", ()) for form in arm["body"]]
        inner += [*body.get("else", ()), *body.get("body", ())]
        inner += [form for member in body.get("members", ()) for form in member]
        inner += [form for handler in body.get("handlers", ()) for form in handler["body"]]
        waiting += reversed(inner)
    return found
