"""Keys of effects that share the id of their event, and line breaks in SQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from vesper.compiler import Compiled, compile_file
from vesper.language.diagnostics.codes import Code
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements

HEAD = """\
node_id: keys_v1
type: event_handler
intent: Tell several people
inputs:
  event_id: string
  names: array<string>
outputs:
  success:
    count: integer
flow:
"""
TAIL = """\
  - operation: return
    success: {count: length(names)}
security:
  capabilities_required: [events.publish.news]
"""
SEND = (
    '  - {{step: {name}, operation: event_publish, topic: news, payload: {{e: "{{event_id}}"}}, effect: keyed{key}}}\n'
)


def checked(tmp_path: Path, flow: str, tail: str = TAIL) -> tuple[Compiled | None, set[Code]]:
    path = tmp_path / "keys_v1.vsp"
    path.write_text(HEAD + flow + tail, encoding="utf-8")
    compiled, bag = compile_file(path)
    return compiled, {each.code for each in bag.sorted() if each.severity.value == "error"}


def test_first_keyed_effect_uses_the_event_id(tmp_path: Path) -> None:
    assert checked(tmp_path, SEND.format(name="one", key=""))[0] is not None


def test_second_keyed_effect_needs_its_own_key(tmp_path: Path) -> None:
    flow = SEND.format(name="one", key="") + SEND.format(name="two", key="")
    assert checked(tmp_path, flow) == (None, {Code.EFFECT_CLASS})
    flow = SEND.format(name="one", key="") + SEND.format(name="two", key=", key: \"event_id + '-2'\"")
    assert checked(tmp_path, flow)[0] is not None


def test_keyed_effect_in_a_loop_needs_its_own_key(tmp_path: Path) -> None:
    loop = """\
  - step: all
    operation: loop
    over: name IN names
    steps:
      - {{step: tell, operation: event_publish, topic: news, payload: {{n: "{{name}}"}}, effect: keyed{key}}}
    collect: tell
"""
    assert checked(tmp_path, loop.format(key="")) == (None, {Code.EFFECT_CLASS})
    assert checked(tmp_path, loop.format(key=", key: event_id + name"))[0] is not None


@pytest.mark.parametrize(
    "step, key, is_shared",
    [
        ("compute, value: name + '!'", "step_1", False),
        ("compute, value: event_id + '!'", "step_1", True),
        ("conditional, condition: name == 'a', then: {value: event_id}, else: {value: event_id}", "step_1", False),
        ("event_publish, topic: news, payload: {e: '1'}, effect: txn", "step_1", False),
        ("compute, value: text(n)", "step_1", False),
        ("compute, value: event_id", "join([x FOR x IN [name]], '')", False),
        ("compute, value: event_id", "join([x FOR x IN [event_id]], '')", True),
    ],
)
def test_a_key_must_depend_on_a_name_of_its_loop(tmp_path: Path, step: str, key: str, is_shared: bool) -> None:
    flow = f"""\
  - step: all
    operation: loop
    over: name IN names
    state: {{n: 0}}
    steps:
      - {{step: step_1, operation: {step}}}
      - {{step: tell, operation: event_publish, topic: news, payload: {{n: "{{name}}"}}, effect: keyed, key: "{key}"}}
    next: {{n: n + 1}}
"""
    path = tmp_path / "keys_v1.vsp"
    path.write_text(HEAD + flow + TAIL, encoding="utf-8")
    _, bag = compile_file(path)
    assert not bag.has_errors, [each.headline for each in bag.sorted()]
    assert (Code.EFFECT_CLASS in {each.code for each in bag.sorted()}) == is_shared


def test_sql_comments_and_literals_keep_line_breaks(tmp_path: Path) -> None:
    flow = """\
  - step: gone
    operation: database_write
    effect: txn
    query: |
      DELETE FROM t -- the old ones
      WHERE expired = 'a  b'
"""
    tail = TAIL.replace("events.publish.news", "database.write.t")
    compiled, codes = checked(tmp_path, flow, tail)
    assert compiled is not None, codes
    (request,) = [each for each in all_statements(compiled.node.body) if isinstance(each, ir.Request)]
    assert request.fixed["sql"] == "DELETE FROM t -- the old ones\nWHERE expired = 'a  b'"


@pytest.mark.parametrize(
    "step",
    [
        "{step: ask, operation: custom, name: score, effect: read, request: {}, returns: integer}",
        "{step: ask, operation: custom, name: score, effect: read, request: [], returns: integer}",
        "{step: ask, operation: external_api_call, provider: bank, method: GET, endpoint: /a, query: {}}",
        "{step: ask, operation: external_api_call, provider: bank, method: GET, endpoint: /a, headers: {}}",
        "{step: ask, operation: database_write, table: things, data: {}}",
    ],
)
def test_a_group_without_a_value_is_reported(tmp_path: Path, step: str) -> None:
    assert checked(tmp_path, f"  - {step}\n") == (None, {Code.WRONG_KIND})
