"""Forged traces: a valid hash does not prove where a trace comes from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.journalled import invoke
from tests.support.nodes import ROOT, compiled
from tests.unit.trace.test_model import case_trace
from vesper.journal.entry import Definition
from vesper.journal.typed_json import decode, encode
from vesper.trace.model import Trace, TraceError
from vesper.trace.programs import compiled_of

GOLDEN = Path(__file__).parent / "goldens" / "format_1_effects.json"


def forged(change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return the golden trace with a change and a recomputed hash."""
    document: Any = decode(GOLDEN.read_bytes().rstrip(b"\n"))
    change(document["trace"])
    document["sha256"] = hashlib.sha256(encode(document["trace"])).hexdigest()
    return encode(document)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda trace: trace.update(trace_id='x"""\nimport os\n"""'), "cannot be a name here"),
        (lambda trace: trace.update(trace_id="../../etc"), "cannot be a name here"),
        (lambda trace: trace["definition"].update(node_id='x"'), "is no id of a node"),
        (lambda trace: trace["definition"].update(semantic_hash="0"), "cannot be a name here"),
        (lambda trace: trace["definition"].update(ir="text"), "the IR of a node is bytes"),
        (lambda trace: trace.update(engines=[]), "no engine ran it"),
        (lambda trace: trace.update(engines=["\x1b[2J"]), "cannot be a name here"),
        (lambda trace: trace.update(started_us="soon"), "a whole number is expected, not str"),
        (lambda trace: trace.update(duration_us=-1), "a whole number from 0 to"),
        (lambda trace: trace.update(inputs=[1]), "names and values are expected, not list"),
        (lambda trace: trace.update(now="noon"), "a time is expected, not str"),
        (lambda trace: trace["marks"][0].__setitem__(4, 99), "something comes after request 99"),
        (lambda trace: trace["marks"][0].__setitem__(0, "1"), "a whole number is expected"),
        (lambda trace: trace["exchanges"][0].update(fixed={"name": 1}), "a text is expected, not int"),
        (lambda trace: trace["exchanges"][0].update(may_have_happened=0), "true or false is expected"),
        (lambda trace: trace.update(outcome={"outcome": "glad"}), "is malformed"),
        (lambda trace: trace.pop("marks"), "is malformed"),
    ],
    ids=[
        "code", "path", "node", "hash", "ir", "engines", "escape", "start", "took", "inputs", "now", "after", "index",
        "fixed", "flag", "outcome", "lacks",
    ],
)  # fmt: skip
def test_a_part_that_is_none_is_refused_by_name(change: Callable[[dict[str, Any]], object], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        Trace.from_bytes(forged(change), "the file")


def test_a_trace_with_a_changed_definition_is_never_run(tmp_path: Path) -> None:
    """The debugger and replay check the IR of a trace before they generate Python from it."""
    trace = case_trace(compiled(ROOT / "nodes" / "payments" / "payment_decision_v1.vsp"), 0)
    definition = trace.definition
    other = compiled(ROOT / "nodes" / "orders" / "order_pricing_v1.vsp")
    changed = {
        "cannot be read": replace(definition, ir=definition.ir.replace(b'"outputs"', b'"0utputs"')),
        "was changed": replace(definition, ir=definition.ir.replace(b"approve", b"aqprove")),
        "carries order_pricing_v1": replace(definition, ir=other.ir, semantic_hash=other.semantic_hash),
        "is not the text that ran": replace(definition, source=definition.source + "\n# more\n"),
    }
    path = tmp_path / "trace.json"
    for message, forgery in changed.items():
        path.write_bytes(replace(trace, definition=forgery).to_bytes())
        for command in (["debug", "--trace", str(path)], ["replay", str(path)], ["traces", "show", str(path)]):
            done = invoke(*command, answer="")
            assert (done.exit_code, message in done.stderr) == (1, True), (command, done.output)


def test_a_callee_of_a_trace_is_checked_too() -> None:
    checkout = compiled(ROOT / "nodes" / "orders" / "checkout_v1.vsp")
    definition = case_trace(checkout, 0).definition
    assert definition.callees
    first = definition.callees[0]

    def carrying(callee: Definition) -> Definition:
        return replace(definition, callees=(callee, *definition.callees[1:]))

    assert compiled_of(carrying(first)).callees
    with pytest.raises(TraceError, match="is not the text that ran"):
        compiled_of(carrying(replace(first, source="node_id: x")))
    with pytest.raises(TraceError):
        compiled_of(carrying(replace(first, ir=first.ir.replace(b"price", b"prize"))))


def test_a_file_without_end_is_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    for path in ("/dev/zero", str(pipe), str(tmp_path) + "/"):
        done = invoke("replay", path)
        assert (done.exit_code, "a regular file is needed" in done.stderr) == (1, True), done.output


def test_a_list_of_many_steps_is_compared_in_no_time() -> None:
    """Comparing two runs without a common step once took quadratic time."""
    from vesper.trace.difference import _step_differences
    from vesper.trace.model import Exchange

    trace = case_trace(compiled(ROOT / "nodes" / "payments" / "payment_handler_v1.vsp"), 0)

    def with_steps(name: str) -> Trace:
        exchanges = tuple(Exchange(f"{name}[{number}]", "clock_now", "read", {}, {}) for number in range(20_000))
        return replace(trace, exchanges=exchanges, marks=())

    left, right = with_steps("a"), with_steps("b")
    found = list(_step_differences(left, right))
    assert [found[0].where, found[-1].where] == ["b[0]", "a[19999]"]
    assert len(found) == 40_000
