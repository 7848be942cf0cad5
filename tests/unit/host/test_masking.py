"""What the audit log shows of sensitive data: masks by provenance, whatever engine ran."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.unit.host.custom_world import World, host_of, settings
from tests.unit.host.small import host_in
from vesper.compiler import compile_file, compile_source
from vesper.effects.custom.performer import effect, unregister
from vesper.engines.outcome import ContractBroken, DeclaredError, Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.host.masking import SENSITIVE, Masks
from vesper.host.prepared import compiled_from, definition_of
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir.encode import encode
from vesper.migration.compare.comparator import kind_of
from vesper.migration.compare.path_words import path_words
from vesper.migration.compare.paths import PathNote

Fields = dict[str, Any]

INCOME = """\
node_id: income_v1
type: http_handler
intent: Say how much a customer may spend on account
inputs:
  income: decimal
  pin: string
outputs:
  success:
    line: decimal
    fixed: decimal
    said: string
  error:
    error_code: enum[few, many]
    message: string
flow:
  - operation: raise
    when: income < 100
    error: {error_code: few, message: "an income of {income}"}
  - operation: raise
    when: income > 100000
    error: {error_code: many, message: "earns {income}, PIN {pin}"}
  - operation: return
    success: {line: income * 2, fixed: '100', said: "'PIN ' + pin"}
security:
  sensitive_data: [income, pin]
  audit_level: detailed
"""


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Run a node, and return its outcome and its audit lines."""

    def run_node(text: str, world: World | None = None, engine: str = "python", **inputs: object) -> Any:
        path = write(tmp_path, text)
        with host_of(settings(tmp_path, grants=[{"nodes": ["*"], "allow": ["*"]}]), world or World()) as host:
            outcome = vesper.load(path, host=host, engine=engine)(**inputs)
            return outcome, audited(host)

    return run_node


def write(folder: Path, text: str) -> Path:
    path = folder / f"{text.partition('node_id: ')[2].partition(chr(10))[0]}.vsp"
    path.write_text(text, encoding="utf-8")
    return path


def audited(host: Host) -> list[Fields]:
    return [each["fields"] for each in host.journal.audit_events()]  # type: ignore[misc]


@pytest.mark.parametrize("engine", list(ENGINES))
def test_derived_outputs_and_messages_are_masked(run: Callable[..., Any], engine: str) -> None:
    returned, (line,) = run(INCOME, engine=engine, income="5000", pin="1234")
    assert returned.value == {"line": 10000, "fixed": 100, "said": "PIN 1234"}  # the caller has the values
    assert line["inputs"] == {"income": SENSITIVE, "pin": SENSITIVE}
    assert line["outputs"] == {"line": SENSITIVE, "fixed": 100, "said": SENSITIVE}
    few, lines = run(INCOME, engine=engine, income="11", pin="1234")
    assert few.error.fields["message"] == "an income of 11"
    assert lines[-1]["outputs"] == {"error_code": "few", "message": SENSITIVE}
    assert lines[-1]["result"] == "few"
    _, lines = run(INCOME, engine=engine, income="999999.9", pin="1234")
    assert lines[-1]["outputs"] == {"error_code": "many", "message": SENSITIVE}


def test_a_release_is_the_only_way_out_and_is_logged(run: Callable[..., Any]) -> None:
    released = f"{INCOME}  declassify: {{line: limits are public, error.message: reviewed}}\n"
    _, (line,) = run(released, income="5000", pin="1234")
    assert line["outputs"] == {"line": 10000, "fixed": 100, "said": SENSITIVE}
    assert line["declassified"] == {"line": "limits are public", "error.message": "reviewed"}
    _, lines = run(released, income="11", pin="1234")
    assert lines[-1]["outputs"]["message"] == "an income of 11"


EFFECTS = """\
node_id: effects_v1
type: event_handler
intent: Pay for a customer
types:
  Customer:
    fields: {name: string, city: string}
inputs:
  event_id: string
  card: string
  amount: decimal
outputs:
  success:
    customer: Customer
    customers: array<Customer>
    name: string
    city: string
    echo: string
flow:
  - step: found
    operation: custom
    name: find
    effect: read
    request: {card: card}
    returns: {type: array<Customer>, sensitive: [name]}
  - step: paid
    operation: custom
    name: pay
    effect: keyed
    key: "'key ' + card"
    request: {card: card, amount: amount, names: '[c.name FOR c IN found]'}
    returns: string
  - operation: return
    success:
      customer: found[0]
      customers: found
      name: found[0].name
      city: found[0].city
      echo: paid
security:
  capabilities_required: [effect.call.find, effect.call.pay]
  sensitive_data: [card]
  audit_level: detailed
"""


def test_requests_are_masked_field_by_field_and_answers_where_declared(run: Callable[..., Any]) -> None:
    rows = [{"name": "Ann", "city": "Linz"}]
    world = World(find=lambda _: rows, pay=lambda _: "charged 4111")
    outcome, (effect, end) = run(EFFECTS, world, event_id="e", card="4111", amount="7.5")
    assert outcome.ok, outcome.error
    assert effect["arguments"] == {"request": {"card": SENSITIVE, "amount": Decimal("7.5"), "names": SENSITIVE}}
    assert effect["key"] == SENSITIVE
    assert end["outputs"] == {
        "customer": {"name": SENSITIVE, "city": "Linz"},
        "customers": [{"name": SENSITIVE, "city": "Linz"}],
        "name": SENSITIVE,
        "city": "Linz",
        # An answer is sensitive only where its step says so.
        "echo": "charged 4111",
    }


def test_an_answer_that_its_step_calls_sensitive_is_masked(run: Callable[..., Any]) -> None:
    world = World(find=lambda _: [{"name": "Ann", "city": "Linz"}], pay=lambda _: "charged 4111")
    text = EFFECTS.replace("    returns: string\n", "    returns: {type: string, sensitive: true}\n")
    _, (_, end) = run(text, world, event_id="e", card="4111", amount="7.5")
    assert end["outputs"]["echo"] == SENSITIVE


INNER = """\
node_id: inner_v1
type: event_handler
intent: Tell what a number is
inputs:
  event_id: string
  number: string
  other: string
outputs:
  success:
    about: string
    unrelated: string
  error:
    error_code: enum[odd]
    message: string
flow:
  - {step: told, operation: custom, name: tell, request: {number: number, other: other}, returns: string}
  - operation: raise
    when: number == 'bad'
    error: {error_code: odd, message: "{number} is bad"}
  - operation: return
    success: {about: "'about ' + number", unrelated: other + told}
security:
  capabilities_required: [effect.call.tell]
"""
OUTER = """\
node_id: outer_v1
type: event_handler
intent: Ask another node
inputs:
  event_id: string
  card: string
  city: string
outputs:
  success:
    about: string
    unrelated: string
flow:
  - {step: asked, operation: call_node, node: inner_v1, inputs: {event_id: event_id, number: card, other: city}}
  - operation: return
    success: {about: asked.about, unrelated: asked.unrelated}
security:
  capabilities_required: [effect.call.tell]
  sensitive_data: [card]
  audit_level: detailed
"""


def test_a_called_node_is_masked_by_what_its_caller_gives(run: Callable[..., Any], tmp_path: Path) -> None:
    write(tmp_path, INNER)
    outcome, (effect, end) = run(OUTER, World(), event_id="e", card="4111", city="Linz")
    assert outcome.ok, outcome.error
    assert effect["step"] == "asked/told"
    assert effect["arguments"] == {"request": {"number": SENSITIVE, "other": "Linz"}}
    assert end["outputs"] == {"about": SENSITIVE, "unrelated": "Linzasked/told"}


CODES = """\
node_id: codes_v1
type: http_handler
intent: End with a code that is an input
inputs:
  kind: enum[odd, even]
outputs:
  success:
    kind: string
  error:
    error_code: enum[odd, even]
    message: string
flow:
  - operation: raise
    error: {error_code: kind, message: no}
security:
  sensitive_data: [kind]
  audit_level: basic
"""


def test_an_error_code_that_is_sensitive_is_no_result(run: Callable[..., Any]) -> None:
    outcome, (line,) = run(CODES, kind="odd")
    assert outcome.error.code == "odd"
    assert line == {"result": SENSITIVE, "outcome": "declared_error"}
    compiled, _ = compile_source(SourceFile("codes_v1.vsp", CODES))
    assert compiled is not None
    assert kind_of(compiled.node, DeclaredError({"error_code": "odd"})) == "error"  # in divergences
    assert path_words(PathNote(b"", (), "error odd"), compiled, ()) == ["error <sensitive>"]  # in `vesper status`


def test_a_document_without_flags_is_masked_whole(tmp_path: Path) -> None:
    compiled, _ = compile_file(write(tmp_path, INCOME))
    assert compiled is not None
    definition = definition_of(compiled)
    old = compiled_from(replace(definition, ir=encode(replace(compiled.node, taint=None))))
    assert old.semantic_hash == compiled.semantic_hash
    masks = Masks(old)
    assert masks.outputs({"line": 1, "fixed": 100}) == {"line": SENSITIVE, "fixed": SENSITIVE}
    assert masks.inputs({"income": 1}) == {"income": SENSITIVE, "pin": SENSITIVE}
    assert masks.outcome(Returned({"fixed": 100})) == Returned({"fixed": SENSITIVE})
    clear = compiled_from(
        replace(
            definition,
            ir=encode(replace(compiled.node, taint=None, grants=replace(compiled.node.grants, sensitive=()))),
        )
    )
    assert Masks(clear).outputs({"line": 1}) == {"line": 1}  # nothing in it is sensitive


def test_values_of_broken_clauses_are_masked_by_name(tmp_path: Path) -> None:
    text = INCOME.replace("flow:\n", "contracts:\n  postconditions: [line > fixed]\nflow:\n")
    compiled, _ = compile_file(write(tmp_path, text))
    assert compiled is not None
    masks = Masks(compiled)
    broken = ContractBroken("postcondition", 0, {"line": 1, "fixed": 2, "elsewhere": 3})
    assert masks.broken(broken) == {"line": SENSITIVE, "fixed": 2, "elsewhere": SENSITIVE}
    assert masks.outcome(Failed("x", None)) == Failed("x", None)


def test_a_log_of_a_failed_effect_repeats_no_sensitive_argument(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @effect("find", effect_class="read")
    def find(card: str) -> object:
        raise ValueError(f"no holder of {card}")

    text = EFFECTS.replace("returns: {type: array<Customer>, sensitive: [name]}", "returns: array<Customer>")
    try:
        with host_in(tmp_path, {}) as host:
            registered("pay")
            outcome = vesper.load(write(tmp_path, text), host=host)(event_id="e", card="4111", amount="1")
            assert outcome.error is not None
            assert outcome.error.code == "effect_failed"
            open_node = text.replace("  sensitive_data: [card]\n", "").replace("effects_v1", "open_v1")
            assert "4111" not in caplog.text
            assert "ValueError" in caplog.text
            vesper.load(write(tmp_path, open_node), host=host)(event_id="e", card="4111", amount="1")
            assert "no holder of 4111" in caplog.text
    finally:
        unregister("find")
        unregister("pay")


def registered(name: str) -> None:
    @effect(name, effect_class="keyed")
    def perform(key: str, card: str, amount: Decimal, names: list[str]) -> object:
        return "paid"


class Broken:
    """A program whose executions raise."""

    def __init__(self, program: Any) -> None:
        self.semantic_hash = program.semantic_hash

    def start(self, inputs: Fields, *_: object, **__: object) -> object:
        raise RuntimeError(f"income {inputs['income']}")


def test_a_log_and_a_message_of_a_broken_engine_repeat_no_value(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    compiled, _ = compile_file(write(tmp_path, INCOME))
    assert compiled is not None
    program: Any = Broken(ENGINES["python"].load(compiled))
    with host_of(settings(tmp_path, grants=[{"nodes": ["*"], "allow": ["*"]}]), World()) as host:
        outcome = vesper.Node(compiled, program, "python", None, (), host)(income="5000", pin="1234")
    assert outcome.error is not None
    assert outcome.error.kind == "engine_fault"
    assert "5000" not in outcome.error.message
    assert "5000" not in caplog.text
    assert "RuntimeError" in caplog.text
