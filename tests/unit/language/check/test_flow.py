"""Flow of a node: accepted and rejected uses of each rule of docs/spec/flow.md, effects.md and nodes.md."""

from __future__ import annotations

import pytest

from vesper.compiler import compile_source
from vesper.language.diagnostics.source import SourceFile

NODE = """node_id: test_v1
type: {type}
intent: Test
types:
  Row:
    fields: {{id: string, total: decimal}}
inputs:
  event_id: string
  n: integer
  d: decimal
  s: string
  ok: boolean
  on: optional<integer>
  color: enum[red, green]
  xs: array<integer>
outputs:
  success: {{result: {result}}}
{errors}
state_machines:
  order:
    initial: open
    transitions: {{open: [paid, closed], paid: [closed]}}
flow:
{flow}
security:
  capabilities_required: [{capabilities}]
{rest}
"""
WHEN_OK = "- {step: a, operation: compute, value: n + 1, when: ok}\n"
BOTH_LEAVE = (
    "- {operation: conditional, condition: ok, then: [{operation: return, success: {result: 1}}],"
    " else: [{operation: return, success: {result: 2}}]}"
)
ERRORS = "  error: {error_code: 'enum[closed, broke]', message: string, detail: optional<string>}"


def returns(value: str) -> str:
    return f"- {{operation: return, success: {{result: {value}}}}}"


RETURN = returns("n")
TRANSITION = "- {step: move, operation: state_machine_transition, machine: order, entity: s, to: closed%s}\n" + RETURN
ASK = "- {step: ask, operation: external_api_call, provider: p, method: POST, endpoint: /x%s}\n" + RETURN
QUERY = "- {step: rows, operation: database_query, query: '%s', bind: [s], returns: array<Row>}\n"
WITH_ROWS = QUERY + returns("length(rows)")
RAISE = "- {operation: raise, when: ok, error: {error_code: %s, message: hello}}\n"


def titles(
    flow: str,
    *,
    type_: str = "event_handler",
    result: str = "integer",
    errors: str = "",
    capabilities: str = "",
    rest: str = "",
) -> list[str]:
    """Return the titles of all diagnostics of a node with this flow, except unused values."""
    indented = "\n".join(f"  {line}" for line in flow.splitlines())
    text = NODE.format(type=type_, result=result, errors=errors, flow=indented, capabilities=capabilities, rest=rest)
    _, bag = compile_source(SourceFile("test_v1.vsp", text))
    return [each.code.title for each in bag.sorted() if each.code.title != "unused-value"]


# -- facts about null -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flow",
    [
        "- {operation: return, when: on IS NULL, success: {result: 0}}\n" + returns("on"),
        "- {step: a, operation: compute, value: on + 1, when: on IS NOT NULL}\n" + returns("a ?? 0"),
        WHEN_OK + "- {operation: return, when: ok, success: {result: a}}\n" + RETURN,
        "- {step: a, operation: compute, value: n + 1, guards: [ok, n > 0]}\n" + returns("a ?? 0"),
        "- {operation: return, when: on IS NOT NULL, guards: [on > 0], success: {result: on}}\n" + RETURN,
        "- {step: a, operation: compute, value: on, guards: [on IS NOT NULL, on > 0]}\n" + returns("a ?? 0"),
        "- {operation: validation, require: [on IS NOT NULL, on > 0]}\n" + returns("on"),
        "- {operation: conditional, condition: on IS NULL, then: [{operation: return, success: {result: 0}}]}\n"
        + returns("on"),
        "- {step: a, operation: conditional, condition: on IS NOT NULL, then: on, else: n}\n" + returns("a"),
        "- {step: a, operation: loop, over: x IN xs WHERE on IS NOT NULL, collect: x + on}\n"
        + returns("length(a.collected)"),
    ],
)
def test_flow_narrows_null(flow: str) -> None:
    assert titles(flow) == []


@pytest.mark.parametrize(
    "flow",
    [
        "- {operation: return, when: on IS NULL AND ok, success: {result: 0}}\n" + returns("on"),
        "- {operation: return, guards: [on IS NULL, ok], success: {result: 0}}\n" + returns("on"),
        WHEN_OK + returns("a"),
        WHEN_OK + "- {operation: return, when: n > 0, success: {result: a}}\n" + RETURN,
        "- {step: a, operation: conditional, condition: ok, then: n}\n" + returns("a"),
        # The step ran, and its own value may be null.
        "- {step: a, operation: compute, value: on, when: ok}\n"
        "- {operation: return, when: ok, success: {result: a}}\n" + RETURN,
        "- {operation: conditional, condition: on IS NULL, then: [{step: a, operation: uuid}]}\n" + returns("on"),
        "- {operation: validation, when: ok, require: [on IS NOT NULL]}\n" + returns("on"),
        "- {step: a, operation: conditional, condition: on IS NULL, else: n,"
        " then: [{operation: return, success: {result: 'quot(1, n)'}}], on_error: {division_by_zero: {value: 1}}}\n"
        + returns("on + a"),
        "- {operation: conditional, condition: on IS NULL,"
        " then: [{operation: return, success: {result: 'quot(1, n)'}}],"
        " on_error: {division_by_zero: {return: {result: on}}}}\n" + returns("on"),
    ],
)
def test_flow_keeps_null_where_it_is_possible(flow: str) -> None:
    assert titles(flow, capabilities="random.read.system" if "uuid" in flow else "") in (
        ["type-mismatch"],
        ["operator-types"],
    )


# -- blocks, values and ends ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "flow, expected",
    [
        (
            "- {step: a, operation: conditional, condition: ok, else: 0,"
            " then: {steps: [{step: b, operation: compute, value: n}], value: b}}\n" + returns("b + a"),
            ["unknown-name"],
        ),
        ("- {step: a, operation: conditional, condition: ok, then: n, else: s}\n" + returns("a"), ["type-mismatch"]),
        (
            "- {step: a, operation: conditional, condition: ok, then: n,"
            " else: [{operation: compute, compute: {b: n}}]}\n" + returns("a"),
            ["wrong-kind"],
        ),
        (
            "- {step: a, operation: conditional, condition: ok, then: n,"
            " else: [{operation: return, success: {result: 1}}]}\n" + returns("a"),
            [],
        ),
        (
            "- {step: result, operation: conditional, condition: ok, then: null, else: n}\n" + returns("result"),
            ["type-mismatch"],
        ),
        (BOTH_LEAVE, []),
        (BOTH_LEAVE + "\n" + RETURN, ["unreachable-step"]),
        (RETURN + "\n" + RETURN, ["unreachable-step"]),
        ("- {operation: return, when: ok, success: {result: 1}}", ["no-return"]),
        (
            "- {step: a, operation: match, on: color, cases: [{is: red, then: 1}, {is: green, then: 2}]}\n"
            + returns("a"),
            [],
        ),
        (
            "- {step: a, operation: match, on: color, cases: [{is: red, then: 1}]}\n" + returns("a"),
            ["match-not-complete"],
        ),
        ("- {step: a, operation: match, on: n, cases: [{is: 1, then: 1}]}\n" + returns("a"), ["match-not-complete"]),
        (
            "- {step: a, operation: match, on: n, cases: [{is: [1, 2], then: 1}, {is: 2, then: 3}], otherwise: 4}\n"
            + returns("a"),
            ["duplicate-key"],
        ),
        (
            "- {step: a, operation: match, on: color, cases: [{is: blue, then: 1}], otherwise: 2}\n" + returns("a"),
            ["not-a-member"],
        ),
        (
            "- {step: a, operation: match, on: d, cases: [{is: 1, then: 1}], otherwise: 2}\n" + returns("a"),
            ["type-mismatch"],
        ),
    ],
)
def test_blocks_values_and_ends(flow: str, expected: list[str]) -> None:
    assert titles(flow) == expected


def test_match_and_conditional_have_the_type_of_their_output() -> None:
    table = "- {step: result, operation: match, on: n, cases: [{is: 1, then: low}], otherwise: high}\n"
    flow = table + "- {operation: return, success: [result]}"
    assert titles(flow, result="'enum[low, high]'") == []
    choice = "- {step: a, operation: conditional, condition: ok, then: low, else: high, type: 'enum[low, high]'}\n"
    assert titles(choice + returns("a"), result="'enum[low, high]'") == []
    assert titles(choice.replace(", type: 'enum[low, high]'", "") + RETURN)[0] == "unknown-name"


# -- loops ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loop, expected",
    [
        ("over: x IN xs, state: {sum: 0}, next: {sum: sum + x}", []),
        ("over: x IN xs, while: sum < 10, state: {sum: 0}, next: {sum: sum + x}, stop_when: sum == 5", []),
        ("while: sum < 10, max: 20, state: {sum: 0}, next: {sum: sum + 1}", []),
        ("while: sum < 10, state: {sum: 0}, next: {sum: sum + 1}", ["missing-key"]),
        ("state: {sum: 0}, next: {sum: sum + 1}", ["missing-key"]),
        ("over: x IN xs", ["missing-key"]),
        ("over: x IN n, collect: x", ["type-mismatch"]),
        ("over: 'x, y IN xs', collect: x", ["type-mismatch"]),
        ("over: x IN xs, state: {sum: 0}, next: {total: sum + x}", ["unknown-name"]),
        ("over: x IN xs, state: {sum: 0}, next: {sum: s}", ["type-mismatch"]),
        ("over: x IN xs, state: {collected: 0}, next: {collected: 1}", ["bad-name"]),
        ("over: x IN xs, max: 1000001, collect: x", ["bad-literal"]),
        ("over: x IN xs, collect: x, steps: [{operation: return, success: {result: x}}]", ["unreachable-step"]),
        ("over: x IN xs, collect: x, steps: [{operation: return, when: x > 3, success: {result: x}}]", []),
        (
            "over: x IN xs, state: {m: {type: 'map<integer, integer>', value: '{}'}}, next: {m: 'put(m, x, n)'}",
            [],
        ),
    ],
)
def test_loops(loop: str, expected: list[str]) -> None:
    assert titles(f"- {{step: a, operation: loop, {loop}}}\n" + RETURN) == expected


def test_empty_map_needs_a_declared_type() -> None:
    assert titles("- {step: a, operation: compute, value: '{}'}\n" + RETURN) == ["type-mismatch"]


# -- errors and handlers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flow, expected",
    [
        (RAISE % "closed" + (RAISE % "broke").replace("when: ok", "when: n > 0") + RETURN, []),
        (RAISE % "closed" + RETURN, ["error-never-raised"]),
        (RAISE % "closed" + RAISE % "bust" + RETURN, ["undeclared-error"]),
        (
            "- {operation: raise, when: ok, error: {error_code: broke}}\n" + RAISE % "closed" + RETURN,
            ["return-outputs"],
        ),
        (
            "- {operation: raise, when: ok, error: {error_code: 'IF n > 0 THEN closed ELSE broke', message: x}}\n"
            + RETURN,
            [],
        ),
        (
            "- {operation: raise, when: ok, error: {error_code: broke, message: 'n is {n}', detail: s, size: 1}}\n"
            + RAISE % "closed"
            + RETURN,
            ["return-outputs"],
        ),
        (
            "- {operation: raise, when: ok, error: {error_code: broke, message: '{on}'}}\n" + RAISE % "closed" + RETURN,
            ["type-mismatch"],
        ),
    ],
)
def test_declared_errors(flow: str, expected: list[str]) -> None:
    assert titles(flow, errors=ERRORS) == expected


def test_raising_an_undeclared_error_is_rejected() -> None:
    assert titles(RAISE % "closed" + RETURN) == ["undeclared-error"]


def test_failure_becomes_declared_error_of_its_name() -> None:
    errors = "  error: {error_code: 'enum[division_by_zero]', message: string}"
    divide = "- {step: a, operation: compute, value: 'quot(n, 2 - n)'}\n"
    assert titles(divide + returns("a"), errors=errors) == []
    assert titles(RETURN, errors=errors) == ["error-never-raised"]
    caught = divide.replace("}\n", ", on_error: {division_by_zero: {value: 0}}}\n")
    assert titles(caught + returns("a"), errors=errors) == ["error-never-raised"]
    more = errors.replace("message: string", "message: string, size: integer")
    assert titles(divide + returns("a"), errors=more) == ["error-never-raised"]


@pytest.mark.parametrize(
    "handlers, expected",
    [
        ("timeout: {value: parse_json('1')}", []),
        ("'timeout, unavailable, http_402, http_4xx, http_5xx, http_error, bad_response': {value: to_json(n)}", []),
        ("any: {return: {result: 0}}", []),
        ("timeout: {value: 1}", ["type-mismatch"]),
        ("not_found: {value: to_json(n)}", ["code-cannot-happen"]),
        ("invalid_transition: {return: {result: 0}}", ["code-cannot-happen"]),
        ("'timeout, timeout': {return: {result: 0}}", ["duplicate-key"]),
        ("timeout: {return: {result: 0}, value: to_json(n)}", ["wrong-kind"]),
        ("timeout: {return: {result: ask}}", ["unknown-name"]),
        ("timeout: {return_error: {error_code: closed, message: x}}", ["undeclared-error"]),
        ("timeout: {transition: {step: undo, machine: order, entity: s, to: paid}}", []),
        (
            (
                "timeout: {compensate: [{step: un, operation: uuid}],"
                " steps: [{step: re, operation: uuid}], return: {result: 0}}"
            ),
            [],
        ),
        (
            "timeout: {steps: [{operation: return, success: {result: 0}}, {step: undo, operation: uuid}]}",
            ["unreachable-step"],
        ),
    ],
)
def test_handlers(handlers: str, expected: list[str]) -> None:
    needs = "network.http_client.p"
    needs += ", state.write.order" if "transition:" in handlers else ""
    needs += ", random.read.system" if "uuid" in handlers and "unreachable-step" not in expected else ""
    assert titles(ASK % f", on_error: {{{handlers}}}", capabilities=needs) == expected


def test_handler_of_a_block_handles_failures_its_steps_pass_on() -> None:
    inner = "{step: t, operation: state_machine_transition, machine: order, entity: s, to: paid%s}"
    outer = (
        "- {operation: conditional, condition: ok, then: [%s], on_error: {invalid_transition: {return: {result: 0}}}}\n"
    )
    needs = "state.write.order"
    assert titles(outer % (inner % "") + RETURN, capabilities=needs) == []
    taken = inner % ", on_error: {invalid_transition: {value: open}}"
    assert titles(outer % taken + RETURN, capabilities=needs) == ["code-cannot-happen"]


def test_step_that_leaves_rejects_handlers() -> None:
    flow = "- {operation: return, success: {result: n}, on_error: {any: {return: {result: 0}}}}"
    assert titles(flow) == ["unknown-key"]


# -- state machines -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more, expected",
    [
        ("", []),
        (", from: paid", []),
        (", from: [open, paid]", []),
        (", from: closed", ["bad-transition"]),
        (", from: shut", ["bad-transition"]),
    ],
)
def test_transitions(more: str, expected: list[str]) -> None:
    assert titles(TRANSITION % more, capabilities="state.write.order") == expected


def test_transition_needs_a_declared_machine() -> None:
    flow = (TRANSITION % "").replace("machine: order", "machine: ordre")
    assert titles(flow) == ["unknown-name"]
    flow = (TRANSITION % "").replace("to: closed", "to: open")
    assert titles(flow) == ["bad-transition"]


# -- effects, classes and capabilities ------------------------------------------------------------


@pytest.mark.parametrize(
    "more, expected",
    [
        ("", []),
        (", effect: keyed", []),  # in an event handler the key is `event_id`
        (", effect: keyed, key: s", []),
        (", effect: keyed, key: n", ["type-mismatch"]),
        (", effect: probe", []),
        (", effect: txn", ["effect-class"]),
        (", effect: unsafe, key: s", ["effect-class"]),
        (", retry: {attempts: 2}", ["effect-class"]),
        (", effect: read, retry: {attempts: 2}", []),
        (", headers: {X-Color: '{color}'}", []),
        (", headers: {X-Many: '{xs}'}", ["type-mismatch"]),
        (", body: {Amount: 1}", []),
        (', body: {"": 1}', ["bad-name"]),
        (", timeout: soon", ["bad-literal"]),
    ],
)
def test_classes_and_fields_of_requests(more: str, expected: list[str]) -> None:
    needs = "" if expected and expected != ["effect-class"] else "network.http_client.p"
    found = titles(ASK % more, capabilities=needs)
    assert [each for each in found if each != "missing-capability"] == expected


def test_keyed_effect_without_event_needs_a_key() -> None:
    errors = ERRORS.replace("closed, broke", "timeout")
    flow = ASK % ", effect: keyed"
    assert titles(flow, type_="http_handler", errors=errors) == ["effect-class"]


@pytest.mark.parametrize(
    "capabilities, rest, expected",
    [
        ("network.http_client.p", "", []),
        ("network.http_client.*", "", []),
        ("", "", ["missing-capability"]),
        ("network.http_client.q", "", ["missing-capability"]),
        ("network.http_client.p, cache.read.c", "", ["unused-capability"]),
        ("network.http_client.p, secrets.read.k", "", []),
        ("network.http.p", "", ["bad-capability", "missing-capability"]),
        ("network.http_client.p", "  denied_capabilities: [network]", ["denied-capability"]),
        ("network.http_client.p", "  denied_capabilities: [network.http_client.q, filesystem.write]", []),
    ],
)
def test_capabilities(capabilities: str, rest: str, expected: list[str]) -> None:
    assert sorted(titles(ASK % "", capabilities=capabilities, rest=rest)) == expected


@pytest.mark.parametrize(
    "sql, expected",
    [
        ("SELECT id, total FROM orders WHERE id = :s", []),
        ("SELECT id, SUM(total) AS total FROM orders WHERE id = :s GROUP BY id", []),
        ("SELECT id FROM orders WHERE id = :s", ["bad-sql"]),
        ("SELECT id, total, name FROM orders WHERE id = :s", ["bad-sql"]),
        ("SELECT * FROM orders WHERE id = :s", ["bad-sql"]),
        ("SELECT id, total + 1 FROM orders WHERE id = :s", ["bad-sql"]),
        ("DELETE FROM orders WHERE id = :s", ["bad-sql"]),
        ("SELECT id, total FROM orders WHERE id = :s; DROP TABLE orders", ["bad-sql"]),
        ("SELECT id, total FROM orders WHERE id = ?", ["bad-sql"]),
        ("SELECT id, total FROM orders WHERE id = :name", ["sql-parameters"]),
        ("SELECT id, total FROM orders", ["sql-parameters"]),
        ("SELECT id, total FROM", ["bad-sql"]),
    ],
)
def test_sql(sql: str, expected: list[str]) -> None:
    needs = "database.read.orders"
    assert titles(WITH_ROWS % sql, capabilities=needs) == expected


def test_each_table_of_a_statement_needs_a_capability() -> None:
    sql = "SELECT o.id, o.total FROM orders AS o JOIN customers AS c ON c.id = o.customer WHERE c.id = :s"
    assert titles(WITH_ROWS % sql, capabilities="database.read.orders") == ["missing-capability"]
    assert titles(WITH_ROWS % sql, capabilities="database.read.orders, database.read.customers") == []


# -- types of nodes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "type_, flow, capabilities, expected",
    [
        ("function", RETURN, "", ["node-type-rule"]),  # it has a state machine
        (
            "function",
            "- {step: a, operation: clock}\n" + RETURN,
            "clock.read.system",
            ["node-type-rule", "node-type-rule"],
        ),
        ("data_transform", WITH_ROWS % "SELECT id, total FROM o WHERE id = :s", "database.read.o", []),
        ("data_transform", TRANSITION % "", "state.write.order", ["node-type-rule"]),
        ("http_handler", RETURN, "", []),  # nothing in it can fail
        ("event_handler", RETURN, "", []),
        ("scheduled_job", RETURN, "", ["node-type-rule"] * 7),
        ("workflow", RETURN, "", ["node-type-rule"]),
        ("state_machine", TRANSITION % "", "state.write.order", []),
        ("state_machine", RETURN, "", ["node-type-rule"]),
        (
            "state_machine",
            "- {step: t, operation: state_machine_transition, machine: order, entity: s, to: paid}\n" + ASK % "",
            "state.write.order, network.http_client.p",
            ["node-type-rule"],
        ),
    ],
)
def test_node_type_rules(type_: str, flow: str, capabilities: str, expected: list[str]) -> None:
    assert titles(flow, type_=type_, capabilities=capabilities) == expected


def test_comma_that_cuts_an_expression_is_explained() -> None:
    flow = "  - {operation: return, success: {result: min(n, 2)}}"
    text = NODE.format(type="event_handler", result="integer", errors="", flow=flow, capabilities="", rest="")
    _, bag = compile_source(SourceFile("test_v1.vsp", text))
    assert "in quotes" in (bag.sorted()[0].help or "")


def test_reserved_word_is_no_name() -> None:
    text = NODE.format(
        type="event_handler", result="integer", errors="", capabilities="", rest="",
        flow="  - {step: old, operation: compute, value: n}",
    )  # fmt: skip
    _, bag = compile_source(SourceFile("test_v1.vsp", text))
    assert any("a word of the language" in (each.help or "") for each in bag.sorted())
