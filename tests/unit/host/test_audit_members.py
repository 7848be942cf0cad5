"""`security.audit`: members at the top level of the audit line, by expressions of the node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import vesper
from tests.unit.host.small import host_in, node_from
from vesper.compiler import compile_source
from vesper.host.host import Host
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir.decode import decode

NODE = """node_id: pay_v1
type: http_handler
intent: Test
inputs:
  user: string
  parts: {type: array<string>, default: [a]}
outputs:
  success: {transaction: string}
  error: {error_code: "enum[refused]", message: string}
flow:
  - operation: raise
    when: user == 'mallory'
    error: {error_code: refused, message: no}
  - operation: return
    success: {transaction: "'txn ' + user"}
security:
  sensitive_data: [user]
  audit_level: basic
"""
AUDIT = """  audit:
    user_id: user
    action: "'pay ' + parts[0]"
    transaction_id: output.transaction
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with host_in(tmp_path, {}) as found:
        yield found


@pytest.mark.parametrize("engine", ["python", "interp"])
def test_members_are_at_the_top_level_of_the_line(tmp_path: Path, host: Host, engine: str) -> None:
    node = node_from(NODE + AUDIT, tmp_path, host, engine)
    with vesper.run_context(actor="ada"):
        assert node(user="u7").ok
    assert not node(user="mallory", parts=["b"]).ok
    assert not node(user="u" * 300, parts=[]).error
    returned, refused, failed = host.journal.audit_events()
    assert (returned["actor"], returned["user_id"], returned["transaction_id"]) == ("ada", "u7", "txn u7")
    assert returned["action"] == "pay a"
    assert (refused["user_id"], refused["action"]) == ("mallory", "pay b")
    assert "transaction_id" not in refused
    assert (failed["action"], failed["audit_failed"]) == ("pay", "index_out_of_range")


def test_member_is_cut_off(tmp_path: Path, host: Host) -> None:
    node_from(NODE + AUDIT, tmp_path, host)(user="u" * 300)
    (line,) = host.journal.audit_events()
    assert line["user_id"] == "u" * 256


def compile_text(text: str) -> tuple[str | None, str | None, list[str]]:
    found, bag = compile_source(SourceFile("pay_v1.vsp", text))
    told = [f"{each.code.number} {each.headline}" for each in bag.sorted(notes=True)]
    if found is None:
        return None, None, told
    assert decode(found.ir).grants == found.node.grants
    return found.semantic_hash, found.node.grants.audit_fields, told


def test_expressions_are_part_of_the_semantics_and_their_layout_is_not() -> None:
    plain, fields, _ = compile_text(NODE)
    assert fields is None
    audited, fields, told = compile_text(NODE + AUDIT)
    assert audited != plain
    assert fields is not None
    assert "VSP3107 `security.audit.user_id` is released: the audit line shows it" in told
    assert compile_text(NODE.replace("flow:\n", "\n\nflow:\n") + AUDIT)[0] == audited
    assert compile_text(NODE + AUDIT.replace("parts[0]", "parts[1]"))[0] not in (plain, audited)


@pytest.mark.parametrize(
    "old, new, problem",
    [
        ("user_id: user", "user_id: parts", "VSP2001 expected optional<string>, found array<string>"),
        ("output.transaction", "output.nothing", "`nothing`"),
        ("user_id: user", "user_id: text(now())", "`now`"),
        ("user_id", "user", "VSP0006 "),
        ("  audit_level: basic\n", "", "VSP0007 `audit` must be absent from a node without `audit_level`"),
    ],
)
def test_what_no_audit_line_can_have_is_refused(old: str, new: str, problem: str) -> None:
    hash_, _, told = compile_text((NODE + AUDIT).replace(old, new))
    assert hash_ is None
    assert any(problem in each for each in told), told
