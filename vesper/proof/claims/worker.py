"""Proof of a node in a process of its own, which ends with the time limit whatever the solver does."""

from __future__ import annotations

import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from vesper.compiler import Compiled
from vesper.proof.claims.model import TIME_LIMIT, NodeProof, Result, Verdict, result_from_data, result_to_data
from vesper.proof.claims.obligations import claims_of
from vesper.proof.claims.proving import prove_node
from vesper.verify.workers.process import WorkerLimits, WorkerProcess

_GRACE_SECONDS = 0.5
"""Time after the limit in which the process may report what it left open."""
_MEBIBYTES = 4_096
_CRASHED = "the prover ended unexpectedly"


def prove_within(compiled: Compiled, seconds: float, on_result: Callable[[Result], None] = lambda _: None) -> NodeProof:
    """Decide the claims of a node in a forked process; claims that are open at the end are unknown."""
    begun = time.monotonic()
    found = NodeProof(compiled.node.node_id, compiled.semantic_hash, time_limit=seconds, processor_seconds=seconds)

    def serve(link: Connection, _watch: Any) -> None:
        used = time.process_time()
        prove_node(compiled, seconds, lambda result: link.send(result_to_data(result)))
        link.send(time.process_time() - used)

    process = WorkerProcess(serve, WorkerLimits(seconds, _MEBIBYTES), ())
    why = f"{TIME_LIMIT} of {seconds:g} s"
    try:
        while (left := begun + seconds + _GRACE_SECONDS - time.monotonic()) > 0 and process.link.poll(left):
            data = process.link.recv()
            if isinstance(data, float):
                found.processor_seconds = data
                break
            found.results.append(result_from_data(data))
            on_result(found.results[-1])
    except EOFError:
        why = _CRASHED
        crash = process.crash()
        why = f"{_CRASHED}: {crash}"
    else:
        process.stop()
    decided = {each.claim.key for each in found.results}
    for claim in claims_of(compiled):
        if claim.key not in decided:
            found.results.append(Result(claim, Verdict.UNKNOWN, why))
    order = {claim.key: number for number, claim in enumerate(claims_of(compiled))}
    found.results.sort(key=lambda each: order.get(each.claim.key, len(order)))
    found.seconds = time.monotonic() - begun
    return found
