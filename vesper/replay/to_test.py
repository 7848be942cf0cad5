"""Tests from traces: the same inputs and completions must give the same outcome on every engine.

`vesper.testing.recorder` builds cases and pytest modules, with placeholders for sensitive values, where the
placeholders satisfy the node. A conformance case compares two engines and holds the inputs unchanged.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass

from vesper.compiler import Compiled
from vesper.engines.engine import Program
from vesper.engines.outcome import ContractBroken, DeclaredError, Failed, Returned
from vesper.engines.registry import PAIR
from vesper.host.outcomes import outcome_record
from vesper.host.plans import Plans, plans_of
from vesper.journal.entry import Entry, Kind
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir.encode import canonical_json
from vesper.replay.rerun import engine_of
from vesper.testing.recorder import HEADER, NotRecorded, case_lines, placeholder_notes
from vesper.testing.replay_host import read_cases
from vesper.trace.model import Trace, TraceError
from vesper.trace.programs import compiled_of, program_of
from vesper.values.model import scalar_text
from vesper.verify.differential.regressions import typed_value


def case_text(
    trace: Trace,
    name: str | None = None,
    placeholders: Mapping[str, object] | None = None,
    reveals: bool = False,
) -> str:
    """Return a file with the case of the trace, as `vesper run --record` writes it.

    A case that `reveals` has the sensitive values as they were. Raises `TraceError`.
    """
    compiled = compiled_of(trace.definition)
    try:
        node, entries = _prepare(trace, compiled), _entries(trace)
        lines = case_lines(node, entries, name or _name(trace), placeholders=placeholders, reveals=reveals)
    except NotRecorded as problem:
        raise TraceError(f"trace {trace.trace_id} cannot be made a case: {problem}") from None
    told = [
        f"{HEADER} from trace {trace.trace_id} of {trace.node_id}.",
        "# Paste the case below `testing: test_cases:` of the node, or answer a test from this file with",
        "# `vesper.testing.Replay`.",
    ]
    return "\n".join([*told, *placeholder_notes(compiled, reveals), "test_cases:", *lines, ""])


def pytest_text(trace: Trace, cases: str, file_name: str) -> str:
    """Return a pytest module that runs the case in `file_name` beside it on every engine."""
    compiled = compiled_of(trace.definition)
    (case,) = read_cases(compiled, SourceFile(file_name, cases))
    node = compiled.node
    inputs = [f"    {name!r}: {value!r}," for name, value in case.inputs.items()]
    takes_now = node.type != "function" and all(each.name != "now" for each in node.inputs)
    is_hosted = not node.is_pure() or node.grants.audit != "none"
    match trace.outcome:
        case Returned():
            checks = ["    assert outcome.ok, outcome.error"]
            checks += [f"    assert outcome[{name!r}] == {value!r}" for name, value in (case.expect or {}).items()]
        case DeclaredError(value):
            checks = [_error_check("declared_error", str(value.get("error_code")))]
        case Failed(code):
            checks = [_error_check("failed", str(code))]
        case ContractBroken(phase):
            checks = [_error_check("contract_broken", phase)]
        case _:
            raise TraceError(f"trace {trace.trace_id} did not end by itself: no test can be made of it")
    body = "\n".join(["INPUTS = {", *inputs, "}"])
    imports = ["from pathlib import Path", "", "import pytest", "", "import vesper"]
    if is_hosted:
        imports.append("from vesper.testing import Replay")
    if "Decimal(" in body + "".join(checks):
        imports.insert(0, "from decimal import Decimal")
    if "datetime." in body + "".join(checks) or takes_now:
        imports.insert(0, "import datetime")
    if not is_hosted:
        imports.remove("from pathlib import Path")
    cases_line = [f"CASES = Path(__file__).with_name({file_name!r})"] if is_hosted else []
    host = ", host=Replay(CASES)" if is_hosted else ""
    now = f", now={case.now!r}" if takes_now else ""
    return "\n".join(
        [
            f'"""Made by `vesper traces to-test` from trace {trace.trace_id} of {trace.node_id}."""',
            "",
            *imports,
            "",
            *cases_line,
            body,
            "",
            "",
            f'@pytest.mark.parametrize("engine", {list(PAIR)!r})',
            f"def test_{_identifier(trace)}(engine: str) -> None:",
            f"    node = vesper.load({trace.node_id!r}, engine=engine{host})",
            f"    outcome = node(**INPUTS{now})",
            *checks,
            "",
        ]
    )


def _error_check(kind: str, code: str) -> str:
    told = f"({kind!r}, {code!r})"
    return f"    assert outcome.error is not None\n    assert (outcome.error.kind, outcome.error.code) == {told}"


def conformance_text(trace: Trace, reveals: bool = False) -> str:
    """Return a case for `tests/conformance/regressions`: engines must agree on these inputs."""
    if trace.is_sensitive and not reveals:
        raise TraceError(
            f"trace {trace.trace_id} is sensitive, and a conformance case holds its inputs and answers as they were: "
            "--reveal writes them; a case (`--as case`) has placeholders"
        )
    given = {name: typed_value(value) for name, value in trace.inputs.items()}
    lines = [
        f"- why: {_flow(f'recorded as trace {trace.trace_id}')}",
        f"  node: {trace.node_id}",
        "  inputs:" if given else "  inputs: {}",
        *(f"    {name}: {_flow(form)}" for name, form in given.items()),
    ]
    if trace.now is not None:
        lines.append(f"  now: {_flow(scalar_text(trace.now))}")
    if trace.exchanges:
        lines.append("  effects:")
    for each in trace.exchanges:
        answer = {"fails": each.failure} if each.failure is not None else {"returns": typed_value(each.value)}
        lines.append(f"    - {_flow({'path': each.path, **answer})}")
    return "\n".join([*lines, "  engines: agree", ""])


def _flow(value: object) -> str:
    return canonical_json(value).decode("utf-8")


@dataclass(frozen=True, slots=True)
class _CaseNode:
    """The parts of a prepared node that `case_lines` reads."""

    compiled: Compiled
    program: Program
    plans: Plans


def _prepare(trace: Trace, compiled: Compiled) -> _CaseNode:
    return _CaseNode(compiled, program_of(compiled, engine_of(trace)), plans_of(compiled))


def _entries(trace: Trace) -> list[Entry]:
    """Return the trace as journal entries."""
    if trace.outcome is None or trace.now is None:
        raise TraceError(f"trace {trace.trace_id} has not ended: no test can be made of it")
    found = [Entry(Kind.START, body={"inputs": dict(trace.inputs), "now": trace.now})]
    for each in trace.exchanges:
        kind = Kind.RESULT if each.failure is None else Kind.FAILED
        body: dict[str, object] = {"value": each.value} if each.failure is None else {"code": each.failure}
        found.append(Entry(kind, each.path, each.effect, each.effect_class, each.key, "", body))
    return [*found, Entry(Kind.END, body=outcome_record(trace.outcome))]


def _name(trace: Trace) -> str:
    return f"as in trace {trace.trace_id}"


def _identifier(trace: Trace) -> str:
    text = re.sub(r"\W", "_", f"{trace.node_id}_{trace.trace_id[-12:]}")
    return f"{text}_" if keyword.iskeyword(text) else text
