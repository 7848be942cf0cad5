"""Recorded runs pass as cases of their node and can be replayed."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import vesper
from tests.support.web import FakeStripe, says
from vesper.cli.main import vesper as command
from vesper.compiler import Compiled, compile_source
from vesper.config.settings import config_from
from vesper.engines.registry import ENGINES
from vesper.language.check.cases import Case
from vesper.language.check.expressions.literals import read_literal
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_tree import Mapping as YamlMapping
from vesper.testing import NotRecorded, Recorder, Replay, ReplayMismatch, Stubs
from vesper.testing.case_yaml import lines, to_yaml
from vesper.values.json_value import Json, parse_json
from vesper.values.model import plain, same
from vesper.values.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    JSON,
    STRING,
    TIMESTAMP,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
)
from vesper.verify.node_tests import NodeTester

ROOT = Path(__file__).parents[3]
PAYMENT = ROOT / "nodes/payments/payment_handler_v1.vsp"
TABLE = """CREATE TABLE transactions (
    transaction_id text PRIMARY KEY, order_id text, user_id text, amount text, status text,
    idempotency_key text UNIQUE, created_at text)"""
API_KEY = "sk_test_0123456789abcdef"
EFFECTFUL = sorted(path for path in (ROOT / "nodes").rglob("*.vsp") if "      effects:" in path.read_text("utf-8"))

LOOK_INTO_WHAT_IS_HIDDEN = ("checkout_v1", "refund_v1")

ASKING = """\
node_id: asking_v1
type: event_handler
intent: Ask whether somebody is known
inputs:
  event_id: string
  name: {type: string, constraints: [non_empty]}
  age: {type: integer, default: 20}
outputs:
  success: {known: boolean, note: json}
contracts:
  preconditions: [age >= 0]
flow:
  - operation: conditional
    condition: age >= 18 AND starts_with(name, "a")
    then:
      - step: adult
        operation: custom
        name: lookup
        effect: read
        request: {name: name}
        returns: json
      - {operation: return, success: {known: true, note: adult}}
  - step: child
    operation: custom
    name: lookup
    effect: read
    request: {name: name}
    returns: json
  - {operation: return, success: {known: false, note: child}}
security:
  capabilities_required: [effect.call.lookup]
  sensitive_data: [name, age]
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[FakeStripe, dict[str, Any]]]:
    """A provider on loopback, a database, and the settings for both."""
    monkeypatch.setenv("VESPER_SECRET_STRIPE_API_KEY", API_KEY)
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute(TABLE)
    with FakeStripe(api_key=API_KEY) as stripe:
        yield (
            stripe,
            {
                "grants": [{"nodes": ["payment_handler"], "allow": ["*"]}],
                "providers": {
                    "stripe": {
                        "base_url": stripe.url,
                        "allow_private_addresses": True,
                        "auth": {"header": "Authorization", "value": "Bearer {secret:stripe_api_key}"},
                    }
                },
                "databases": {"main": {"dsn": f"sqlite:{tmp_path / 'shop.db'}"}},
                "journal": {"dsn": f"sqlite:{tmp_path / 'journal.db'}"},
            },
        )


def pasted(node: str, recording: str) -> str:
    """Return the node with the recorded cases added to its `test_cases`."""
    cases = recording.partition("\ntest_cases:\n")[2]
    assert cases.startswith("    - name: ")
    if "\n  test_cases:\n" not in node:
        return f"{node}\ntesting:\n  test_cases:\n{cases}"
    return node.replace("\n  test_cases:\n", f"\n  test_cases:\n{cases}", 1)


def assert_met(compiled: Compiled, names: list[str]) -> None:
    """Assert that the cases with these names pass on both engines."""
    tester = NodeTester(compiled, ENGINES)
    for name in names:
        (case,) = [each for each in compiled.cases if each.name == name]
        result = tester.run_case(case)
        assert result.passed, [(each.engine, each.problem, each.outcome) for each in result.answers]


def checked(path: Path, text: str) -> Compiled:
    compiled, bag = compile_source(SourceFile(str(path), text))
    assert compiled is not None, [
        (each.headline, bag.source.position(each.primary.span.start)) for each in bag.sorted()
    ]
    return compiled


# -- for real -------------------------------------------------------------------------------------


def test_a_payment_is_recorded_passes_as_a_case_and_is_replayed(
    shop: tuple[FakeStripe, dict[str, Any]], tmp_path: Path
) -> None:
    stripe, settings = shop
    path = tmp_path / "recorded" / "payment.yaml"
    with vesper.Host(config_from(settings, tmp_path)) as real:
        host = Recorder(real, path, name="a payment")
        node: Any = vesper.load(PAYMENT, host=host)
        paid = node(order_id="ord_1", user_id="cus_0042", amount="99.90", idempotency_key="k-1")
        assert paid.ok, paid.error
        again = node(order_id="ord_1", user_id="cus_0042", amount="99.90", idempotency_key="k-1")
        declined = asyncio.run(node.arun(order_id="ord_2", user_id="declined", amount="5"))
        assert (again["is_repeat"], declined.error.code) == (True, "card_declined")
    assert stripe.counts()["charges"] == 1
    text = path.read_text(encoding="utf-8")
    for hidden in (API_KEY, "cus_0042", "declined:", "customer: declined"):
        assert hidden not in text
    assert "user_id: xxx_0000, amount: 99.90" in text
    assert "customer: xxx_0000" in text  # also in every other place
    compiled = checked(PAYMENT, pasted(PAYMENT.read_text("utf-8"), text))
    assert_met(compiled, ["a payment", "a payment 2", "a payment 3"])

    stripe.close()
    with Replay(path, "a payment") as replay:
        node = vesper.load(PAYMENT, host=replay)
        outcome = node(replay.inputs(node))
        assert (outcome["transaction_id"], outcome["amount_charged"]) == ("ch_1", Decimal("99.90"))
        assert outcome["at"] == paid["at"]  # the replay starts at the recorded time
    with Replay(path) as replay:  # several cases: the inputs select one
        node = vesper.load(PAYMENT, host=replay, engine="interp")
        assert node(order_id="ord_2", user_id="xxxxxxxx", amount="5").error.code == "card_declined"
        with pytest.raises(ReplayMismatch, match="no case with these inputs; it has `a payment`, `a payment 2`, `a pa"):
            node(order_id="ord_3", user_id="xxxxxxxx", amount="5")


def test_the_command_records_and_the_case_passes_where_it_is_pasted(
    shop: tuple[FakeStripe, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stripe, _ = shop
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / PAYMENT.name).write_bytes(PAYMENT.read_bytes())
    (tmp_path / "vesper.toml").write_text(
        f"""[[grants]]
nodes = ["*"]
allow = ["*"]
[providers.stripe]
base_url = "{stripe.url}"
allow_private_addresses = true
auth = {{ header = "Authorization", value = "Bearer {{secret:stripe_api_key}}" }}
[databases.main]
dsn = "sqlite:shop.db"
""",
        encoding="utf-8",
    )
    inputs = ["-i", "order_id=ord_1", "-i", "user_id=cus_0042", "-i", "amount=12.50"]
    code, said = ran("run", "payment_handler", *inputs, "--engine", "both", "--record", "payment.yaml")
    assert code == 0, said
    assert "recorded in payment.yaml" in said
    assert "direct agrees with python" in said
    recording = (tmp_path / "payment.yaml").read_text(encoding="utf-8")
    node = tmp_path / "nodes" / PAYMENT.name
    node.write_text(pasted(node.read_text("utf-8"), recording), encoding="utf-8")
    code, said = ran("test", "payment_handler", "-k", "recorded 2", "--engine", "both")
    assert code == 0, said
    assert "1/1 cases" in said
    # The second time the order is already paid: that is a case too, and the exit code is the run's.
    code, said = ran("run", "payment_handler", *inputs, "--record", "payment.yaml", "--format", "json")
    assert (code, '"recorded": true' in said) == (1, True), said
    assert "order_not_pending" in (tmp_path / "payment.yaml").read_text(encoding="utf-8")
    (tmp_path / "own.yaml").write_text("mine: true\n", encoding="utf-8")
    code, said = ran("run", "payment_handler", *inputs, "--record", "own.yaml")
    assert code == 1
    assert "own.yaml exists and is not a recording: it is not overwritten" in said
    code, said = ran("run", "payment_handler", "--case", "half a cent", "--record", "x.yaml")
    assert (code, "omit --record" in said) == (2, True)
    assert stripe.counts()["charges"] == 1


def ran(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, list(words))
    return done.exit_code, done.output


def test_a_secret_that_a_provider_echoes_is_not_written(
    shop: tuple[FakeStripe, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stripe, settings = shop
    monkeypatch.setattr(stripe, "answer", says({"id": f"for {API_KEY}", "status": "pending"}))
    with vesper.Host(config_from(settings, tmp_path)) as real:
        node = vesper.load(PAYMENT, host=Recorder(real, tmp_path / "echo.yaml", name="echo"))
        outcome = node(order_id="ord_1", user_id="cus_0042", amount="5")
        assert outcome.error is not None
        assert outcome.error.code == "bad_response"
    text = (tmp_path / "echo.yaml").read_text(encoding="utf-8")
    assert API_KEY not in text
    assert_met(checked(PAYMENT, pasted(PAYMENT.read_text("utf-8"), text)), ["echo"])


@pytest.mark.parametrize("path", EFFECTFUL, ids=lambda path: path.stem)
def test_every_case_of_every_node_is_recorded_as_a_case_that_is_met(path: Path, tmp_path: Path) -> None:
    """Stubs give a case's answers while its run is recorded; the recording must pass like the case."""
    loaded = vesper.load(path)
    file = tmp_path / "again.yaml"
    cases = [each for each in loaded._compiled.cases if each.effects]
    texts: list[str] = []
    for number, case in enumerate(cases):
        # Keep the value if the node reads it: a placeholder would change the outcome.
        sensitive = loaded._compiled.node.grants.sensitive if path.stem in LOOK_INTO_WHAT_IS_HIDDEN else ()
        chosen = {name: case.inputs[name] for name in sensitive if name in case.inputs}
        reveals = path.stem == "ticket_triage_v1"  # the flow reads what the model answers about a sensitive text
        host = Recorder(stubs_of(case), file, name=f"again {number}", placeholders=chosen, reveals=reveals)
        record(loaded, case, host)
        texts.append(file.read_text(encoding="utf-8").partition("\ntest_cases:\n")[2])
    recording = "\ntest_cases:\n" + "".join(texts)
    again = checked(path, pasted(path.read_text("utf-8"), recording))
    assert_met(again, [f"again {number}" for number, _ in enumerate(cases)])


def stubs_of(case: Case) -> Stubs:
    stubs = Stubs()
    for each in case.effects:
        if each.fails is not None:
            stubs.answer(each.path, fails=each.fails, times=1)
        elif not each.is_due:
            stubs.answer(each.path, plain(each.returns), times=1)
    return stubs


def record(node: vesper.Node, case: Case, host: Recorder) -> None:
    with host:
        now = case.now if isinstance(case.now, datetime) else host.moment()
        host.run(host.prepare(node._compiled, node._program, "python"), dict(case.inputs), now)


# -- placeholders ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> vesper.Node:
    path = tmp_path_factory.mktemp("nodes") / "asking_v1.vsp"
    path.write_text(ASKING, encoding="utf-8")
    return vesper.load(path)


def on(node: vesper.Node, host: vesper.Host, engine: str = "python") -> Any:
    """Return the same node on another Host."""
    return vesper.Node(node._compiled, ENGINES[engine].load(node._compiled), engine, None, (), host)


def test_a_sensitive_value_is_hidden_wherever_it_turns_up(asking: vesper.Node, tmp_path: Path) -> None:
    with Stubs() as stubs:
        answer = {"about": "Berta-12 is here", "of": "Berta-12", "age": 12, "list": ["Berta-12", {"Berta-12": "Bert"}]}
        stubs.answer("child", answer)
        outcome = on(asking, Recorder(stubs, tmp_path / "a.yaml", name="n"))(event_id="e", name="Berta-12", age=12)
        assert outcome.ok, outcome.error
    text = (tmp_path / "a.yaml").read_text(encoding="utf-8")
    assert "Berta" not in text
    assert "list: [Xxxxx-00, {Xxxxx-00: Bert}]" in text
    assert "{event_id: e, name: Xxxxx-00, age: 11}" in text
    assert "about: Xxxxx-00 is here" in text
    assert "Sensitive inputs, replaced by placeholders of the same shape: name, age." in text
    assert_met(checked(tmp_path / "asking_v1.vsp", pasted(ASKING, text)), ["n"])


def test_a_placeholder_that_changes_the_outcome_is_reported_and_can_be_replaced(
    asking: vesper.Node, tmp_path: Path
) -> None:
    path = tmp_path / "a.yaml"
    with Stubs() as stubs:
        stubs.answer("adult", None)
        with pytest.raises(
            NotRecorded, match=r"requests `.*child`, but the run requested .*adult(.|\n)*placeholders=.*--reveal"
        ) as told:
            on(asking, Recorder(stubs, path))(event_id="e", name="anna", age=44)
        assert told.value.ran is not None
        assert told.value.ran.outcome.kind == "returned"  # the run was performed nevertheless
        assert not path.exists()
        chosen = {"name": "abcd"}
        assert on(asking, Recorder(stubs, path, placeholders=chosen))(event_id="e", name="anna").ok
        assert "inputs: {event_id: e, name: abcd}" in path.read_text(encoding="utf-8")
        for wrong, why in (({"event_id": "x"}, "not a sensitive input"), ({"age": "x"}, "has the wrong type")):
            with pytest.raises(NotRecorded, match=why):
                on(asking, Recorder(stubs, path, placeholders=wrong))(event_id="e", name="anna", age=44)


LETTER = """\
node_id: letter_v1
type: event_handler
intent: Greet a customer of another system
types:
  Customer: {fields: {name: string, language: "enum[en, de]"}}
inputs: {event_id: string}
outputs: {success: {greeting: string, again: json}}
flow:
  - step: row
    operation: custom
    name: customer
    returns: {type: optional<Customer>, sensitive: [name]}
  - step: customer
    value: "row ?? {name: 'customer', language: en}"
  - step: other
    operation: custom
    name: other
    returns: json
  - return:
      greeting: "IF customer.language == de THEN 'Guten Tag ' + customer.name ELSE 'Dear ' + customer.name"
      again: other
security: {capabilities_required: [effect.call.customer, effect.call.other]}
"""


def test_the_sensitive_part_of_an_answer_is_hidden_unless_it_is_revealed(tmp_path: Path) -> None:
    file, path, texts = tmp_path / "letter_v1.vsp", tmp_path / "a.yaml", {}
    file.write_text(LETTER, encoding="utf-8")
    for reveals in (False, True):
        with Stubs() as stubs:
            stubs.answer("row", {"name": "Zebulonia", "language": "de"})
            stubs.answer("other", ["it is Zebulonia here"])
            host = Recorder(stubs, path, name="n", reveals=reveals)
            assert vesper.load(file, host=host)(event_id="e").greeting == "Guten Tag Zebulonia"
        texts[reveals] = path.read_text(encoding="utf-8")
        assert_met(checked(file, pasted(LETTER, texts[reveals])), ["n"])
    assert "Zebulonia" not in texts[False]
    assert "# Steps whose sensitive answers are replaced by placeholders of the same shape: row." in texts[False]
    assert "returns: {name: Xxxxxxxxx, language: de}" in texts[False]
    assert "greeting: Guten Tag Xxxxxxxxx" in texts[False]
    assert "it is Xxxxxxxxx here" in texts[False]
    assert "# It shows sensitive values." in texts[True]
    assert "it is Zebulonia here" in texts[True]


def test_a_run_that_cannot_be_a_case_is_not_written(asking: vesper.Node, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    with Stubs() as stubs:
        node = on(asking, Recorder(stubs, path))
        stubs.answer("child", "x" * 70_000)
        with pytest.raises(NotRecorded, match=r"cannot be written as a case:(.|\n)*65,536 bytes in one literal"):
            node(event_id="e", name="x")
        with pytest.raises(NotRecorded, match="rejected its inputs"):
            node(event_id="e", name=5)
    with vesper.Host(config_from({}, tmp_path)) as real, pytest.raises(NotRecorded, match="ends as denied"):
        on(asking, Recorder(real, path))(event_id="e", name="x")
    assert not path.exists()


def test_a_contract_that_breaks_and_a_failure_are_cases(asking: vesper.Node, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    with Stubs() as stubs:
        node = on(asking, Recorder(stubs, path, name="n", placeholders={"age": -5}))
        assert node(event_id="e", name="x", age=-1).error.kind == "contract_broken"
        node = on(asking, Recorder(stubs, path, name="n"))
        stubs.answer("child", fails="effect_failed")
        assert node(event_id="e", name="x", age=7).error.code == "effect_failed"
        text = path.read_text(encoding="utf-8")
        assert "expect: {fails: effect_failed}" in text
        assert_met(checked(tmp_path / "asking_v1.vsp", pasted(ASKING, text)), ["n"])


# -- files ----------------------------------------------------------------------------------------


def test_a_file_that_is_not_to_be_written_is_refused_before_anything_is_performed(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("test_cases: []\n", encoding="utf-8")
    with Stubs() as stubs:
        for path, why in (
            (tmp_path / "mine.yaml", "not a recording: it is not overwritten"),
            (tmp_path, "cannot be written: Is a directory"),
            (tmp_path / "mine.yaml" / "below.yaml", "cannot be written: "),
        ):
            with pytest.raises(NotRecorded, match=why):
                Recorder(stubs, path)
    assert (tmp_path / "mine.yaml").read_text(encoding="utf-8") == "test_cases: []\n"


def test_a_recording_is_of_one_node(asking: vesper.Node, tmp_path: Path) -> None:
    with Stubs() as stubs:
        with pytest.raises(TypeError, match="another Recorder"):
            Recorder(Recorder(stubs, tmp_path / "a.yaml"), tmp_path / "b.yaml")
        stubs.answer("child", None)
        host = Recorder(stubs, tmp_path / "a.yaml")
        assert on(asking, host)(event_id="e", name="x").ok
        other = vesper.load(PAYMENT, host=host)
        with pytest.raises(NotRecorded, match="records asking_v1: record payment_handler_v1 into another file"):
            other(order_id="ord_1", user_id="u", amount="5")
        assert stubs.asked[-1].step == "child"


# -- replaying ------------------------------------------------------------------------------------

RECORDED = """\
test_cases:
    - name: known
      inputs: {event_id: e, name: x}
      now: 2026-11-15T12:00:00Z
      effects:
        - {step: child, request: {name: lookup, request: {name: x}}, returns: {"n": 1.10}}
      expect: {known: false}
    - name: unknown
      inputs: {event_id: e, name: y}
      effects:
        - {step: child, fails: timeout}
        - {step: adult, returns: 1}
      expect: {fails: timeout}
"""


def replaying(tmp_path: Path, text: str = RECORDED, case: str | None = None) -> Replay:
    path = tmp_path / "r.yaml"
    path.write_text(text, encoding="utf-8")
    return Replay(path, case)


@pytest.mark.parametrize("engine", list(ENGINES))
def test_a_replay_answers_what_was_recorded_and_nothing_else(asking: vesper.Node, tmp_path: Path, engine: str) -> None:
    with replaying(tmp_path) as replay:
        node = on(asking, replay, engine)
        assert node(event_id="e", name="x")["note"] == {"n": Decimal("1.10")}
        with pytest.raises(ReplayMismatch, match="the node ended without the recorded request `adult`"):
            node(event_id="e", name="y")
        with pytest.raises(ReplayMismatch, match="no case with these inputs; it has `known`, `unknown`"):
            node(event_id="other", name="x")
        with pytest.raises(ReplayMismatch, match="no case with these inputs"):
            replay.inputs(node)
    with replaying(tmp_path, case="known") as replay:
        node = on(asking, replay, engine)
        assert replay.inputs(node) == {"event_id": "e", "name": "x"}
        with pytest.raises(ReplayMismatch, match=r"`child` has `request` \{name: \"z\"\}, but the recording has"):
            node(event_id="e", name="z")
        with pytest.raises(ReplayMismatch, match="requests `adult`, but the next recorded request is `child`"):
            asyncio.run(node.arun(event_id="e", name="a"))
        assert node(replay.inputs(node)).ok  # the earlier mistake does not count
    with (
        replaying(
            tmp_path, RECORDED.replace("      effects:\n        - {step: child, request", "      # {"), "known"
        ) as bare,
        pytest.raises(ReplayMismatch, match="requests `child`, which was not recorded"),
    ):
        on(asking, bare, engine)(event_id="e", name="x")


@pytest.mark.parametrize(
    "text, why",
    [
        (RECORDED.replace("step: child, request", "step: chld, request"), r"r\.yaml:6:18(.|\n)*did you mean `child`"),
        (RECORDED.replace("name: x}\n", "nam: x}\n", 1), "no input is named `nam`"),
        (RECORDED.replace("test_cases", "cases"), r"`cases`"),
        ("test_cases: [", "this is not YAML"),
        ("", "an empty file"),
        ("- a", "a file of cases"),
    ],
)
def test_a_file_without_cases_of_the_node_is_reported_with_the_place(
    asking: vesper.Node, tmp_path: Path, text: str, why: str
) -> None:
    with replaying(tmp_path, text) as replay, pytest.raises(ReplayMismatch, match=why):
        on(asking, replay)(event_id="e", name="x")


def test_an_unreadable_file_is_reported(tmp_path: Path, asking: vesper.Node) -> None:
    with pytest.raises(ReplayMismatch, match="cannot be read: No such file"):
        Replay(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff")
    with pytest.raises(ReplayMismatch, match="cannot be read"):
        Replay(tmp_path / "bytes.yaml")
    with (tmp_path / "huge.yaml").open("wb") as file:
        file.truncate(9 << 20)
    with pytest.raises(ReplayMismatch, match="larger than 8,388,608 bytes"):
        Replay(tmp_path / "huge.yaml")
    with replaying(tmp_path, case="nobody") as replay, pytest.raises(ReplayMismatch, match="no case `nobody`; it has"):
        on(asking, replay)(event_id="e", name="x")


# -- spelling -------------------------------------------------------------------------------------

TEXTS = [
    "", " ", "a", "a b", "a  b", " a", "a ", "null", "~", "true", "yes", "1", "-1", "1.0", "1e5", "0x1", "{", "[a]",
    "a: b", "a #b", "# a", "- a", "-", "?", "!a", "&a", "*a", "%a", "@a", "`a", "'", '"', "\\", "a\nb", "\t",
    "\u202e", "\ufeff", "\x7f", "é", "€", "😀", "/v1/a", "a/b.c-d", "2026-11-15", "2026-11-15T12:00:00Z", "a,b",
    "a}", "<<", "=", "|", ">", "null ", '"x"', "x" * 200, "word " * 40, "\u2028", "a:b", "://", "'a'", "no",
]  # fmt: skip
JSONS = [
    "null", "true", "1", "-0.50", '"a"', '"1"', '"null"', "[]", "{}", '{"a b": {"c": [1, 2.50, null, "true", "x"]}}',
    '{"": "", "1": 1, "null": null, "a:b": "c"}', "1" + "0" * 30, "[" * 40 + "]" * 40, '{"a": ' * 20 + "1" + "}" * 20,
    "[" + ", ".join(['"some words"'] * 30) + "]", '{"x": [[[1], [2]], []]}',
]  # fmt: skip


def values() -> Iterator[tuple[Type, Any]]:
    for text in TEXTS:
        yield STRING, text
        yield OptionalOf(STRING), text
        yield ArrayOf(STRING), [text, text]
        yield MapOf(STRING, STRING), {text: text}
        yield JSON, Json(text)
        yield JSON, Json((text, {text: text}))
    for each in JSONS:
        yield JSON, parse_json(each)
        yield Record((("body", JSON), ("rest", OptionalOf(JSON)))), {"body": parse_json(each), "rest": None}
    long = [f"item number {number}" for number in range(30)]
    point = Record((("x", DECIMAL), ("tags", SetOf(STRING))))
    others: list[tuple[Type, Any]] = [
        (DECIMAL, Decimal("0.10")), (DECIMAL, Decimal(-100)), (INTEGER, -(2**63)), (FLOAT, -0.0), (FLOAT, 1e300),
        (BOOLEAN, False), (BYTES, b"\x00\xff"), (DATE, date(2024, 2, 29)), (DURATION, timedelta(microseconds=-1)),
        (TIMESTAMP, datetime(2026, 11, 15, 12, 0, 0, 1, tzinfo=UTC)), (Enum(("a", "b")), "b"),
        (OptionalOf(DECIMAL), None), (ArrayOf(STRING), []), (ArrayOf(STRING), long), (MapOf(INTEGER, STRING), {1: "a"}),
        (MapOf(DATE, DECIMAL), {date(2024, 1, 1): Decimal("1.0")}), (SetOf(STRING), frozenset(long)), (Record(()), {}),
        (ArrayOf(point), [{"x": Decimal(n), "tags": frozenset(long)} for n in range(3)]), (MapOf(STRING, STRING), {}),
        (ArrayOf(ArrayOf(STRING)), [long, [], long]), (ArrayOf(JSON), [Json(("1", "a b")), Json(None)]),
    ]  # fmt: skip
    yield from others


def test_written_values_read_back_unchanged() -> None:
    count = 0
    for type_, value in values():
        text = "\n".join(lines("value", to_yaml(type_, value), 4)) + "\n"
        bag = DiagnosticBag(SourceFile("x.yaml", text))
        tree = read_yaml(bag)
        assert isinstance(tree, YamlMapping), text
        found = read_literal(type_, tree.entries[0][1], "value", bag)
        assert not bag.has_errors, (text, [each.headline for each in bag.sorted()])
        assert same(found, value), (type_, value, text)
        count += 1
    assert count > 6 * len(TEXTS)
