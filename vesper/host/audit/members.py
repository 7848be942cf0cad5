"""Members of an audit line that a node declares under `security.audit`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from vesper.compiler.compiled import Compiled
from vesper.engines.engine import Program
from vesper.engines.outcome import Failed, Outcome, Returned
from vesper.engines.python_engine import PythonEngine
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir.decode import decode
from vesper.language.ir.encode import encode_and_hash
from vesper.language.ir.nodes import Node
from vesper.values.inputs import accept_inputs
from vesper.values.model import plain

MAX_CHARACTERS = 256
"""Length of a member; a longer text is cut off."""


def audit_members(node: Node, inputs: Mapping[str, object], outcome: Outcome) -> dict[str, str]:
    """Return the members that are not null. Where the expressions fail, `audit_failed` has the code."""
    assert node.grants.audit_fields is not None
    values, _ = accept_inputs(node.declared_inputs, dict(inputs))
    given = {f"input_{name}": plain(value) for name, value in values.items()}
    if isinstance(outcome, Returned):
        given |= {f"output_{name}": value for name, value in outcome.value.items()}
    found = _program(node.grants.audit_fields).call(given, None)
    if isinstance(found, Returned):
        return {name: text[:MAX_CHARACTERS] for name, text in found.value.items() if isinstance(text, str)}
    return {"audit_failed": str(found.code) if isinstance(found, Failed) else found.kind}


@lru_cache(maxsize=256)
def _program(text: str) -> Program:
    node = decode(text.encode())
    written = encode_and_hash(node)
    assert written is not None, "it is smaller than the node that has it"
    return PythonEngine().load(Compiled(SourceFile("audit", ""), node, (), *written))
