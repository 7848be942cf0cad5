"""Proven checks that the direct engine leaves out of its plain form (docs/spec/proofs.md).

They come from the private cache of `vesper prove`, or also from the committed file of a folder of nodes. The engine
verifies that each names a check; a wrong proof can make a node return a value that a clause would have refused, and
nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vesper.cache.proofs import PROVER_VERSION, ProvenChecks, find_proof
from vesper.compiler.load_cache import collection_folder
from vesper.engines.engine import EngineUnavailable
from vesper.engines.tiering import ProofSource
from vesper.language.ir.nodes import Call, Expression, Node, walk
from vesper.storage.file_access import read_regular
from vesper.storage.trust import distrust
from vesper.values.generated.operations import OPERATIONS

if TYPE_CHECKING:
    from vesper.compiler import Compiled

PROOFS_NAME = "vesper.proofs.json"
"""The committed results of `vesper prove --save`, beside `vesper.lock`."""
MAX_PROOFS_BYTES = 64 << 20
_NEVER_FAILS = ("optional.unwrap",)
"""Operations that the checker inserts only where they cannot fail."""


def proven_checks(nodes: Iterable[Compiled], source: ProofSource) -> list[ProvenChecks]:
    """Return the proven checks of these nodes. Raises `EngineUnavailable` for a file that cannot be used."""
    found: list[ProvenChecks] = []
    for each in nodes if source != "off" else ():
        proof = find_proof(each.semantic_hash)
        checks = None
        if proof is not None:
            checks = proof["checks"]
        elif source == "file":
            checks = _read_checks_file(Path(collection_folder(each.path)) / PROOFS_NAME).get(each.semantic_hash)
        if checks is not None:
            found.append(_without_failing(each.node, checks))
    return found


def _without_failing(node: Node, checks: ProvenChecks) -> ProvenChecks:
    """Return the checks without clauses that may fail to evaluate. A proven clause is never false, but it may fail."""
    name, clauses, calls = checks
    listed = set(clauses)
    failing = {
        root.index
        for root in node.roots()
        if root.index in listed and any(_may_fail(part) and part.index not in calls for part in walk(root))
    }
    return name, [each for each in clauses if each not in failing], calls


def _may_fail(part: Expression) -> bool:
    return isinstance(part, Call) and part.op not in _NEVER_FAILS and bool(OPERATIONS[part.op].raises)


def _read_checks_file(path: Path) -> dict[str, ProvenChecks]:
    """Return the proven checks of a committed file by semantic hash. There are none if there is no file."""
    try:
        changed = path.stat().st_mtime_ns
    except FileNotFoundError:
        return {}
    if (reason := distrust(path)) is not None:
        raise EngineUnavailable(reason)
    return _read(path, changed)


@lru_cache(maxsize=8)
def _read(path: Path, _changed: int) -> dict[str, ProvenChecks]:
    try:
        form: dict[str, Any] = json.loads(read_regular(path, MAX_PROOFS_BYTES))
        if form["prover"] != PROVER_VERSION:
            return {}
        listed = ((each["hash"], each["checks"]) for each in form["nodes"].values())
        return {
            name: (name, list(map(int, checks["clauses"])), list(map(int, checks["calls"]))) for name, checks in listed
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise EngineUnavailable(
            f"{path} is no file of `vesper prove --save` ({type(problem).__name__}); save it again, or set "
            '`proofs = "off"` under [engine]'
        ) from None
