"""A node and the options of its batches as plain data, for worker processes that have none of the node's files."""

from __future__ import annotations

import platform
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from vesper.api.batch import batch_of
from vesper.api.node import Node
from vesper.batch.errors import BatchError
from vesper.batch.table import Form, Wanted
from vesper.cache.fingerprint import source_hash
from vesper.compiler import Compiled
from vesper.compiler.load_cache import node_from_bytes, node_to_bytes
from vesper.engines.engine import Limits
from vesper.engines.registry import TIERED, engine_named

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ShippedBatch:
    """What a worker needs to run rows; it holds no object of the engine, so it can be pickled."""

    node: bytes
    """`node_to_bytes`: text, IR and callees."""
    version: bytes
    """Hash of the Vesper and Python that wrote `node`."""
    engine: str
    limits: Limits | None
    wanted: Wanted
    start: datetime | None

    def load(self) -> Callable[[Form, pa.Table], pa.Table]:
        """Load the node, and return the function that runs the rows of a table."""
        if self.version != source_hash():
            raise BatchError(
                f"the worker on {socket.gethostname()} has another version of Vesper or Python "
                f"({platform.python_version()}) than this process: install the same ones on all machines of the cluster"
            )
        compiled = node_from_bytes(self.node)
        batch = batch_of(compiled, engine_named(self.engine).load(compiled), self.limits)

        def run(form: Form, table: pa.Table) -> pa.Table:
            return batch.run_form(form, table, self.wanted, self.start)

        return run


def ship_batch(
    compiled: Compiled, engine: str, limits: Limits | None, wanted: Wanted, start: datetime | None
) -> ShippedBatch:
    """Return a node as data for workers."""
    return ShippedBatch(node_to_bytes(compiled), source_hash(), engine, limits, wanted, start)


def ship_node(node: Node, wanted: Wanted, now: datetime | None) -> ShippedBatch:
    """Return a loaded node as data for workers. Raises `BatchError` for one that cannot run tables."""
    batch_of(node._compiled, node._table_program, node._limits)
    engine = node.engine if node._load_direct is None else TIERED
    return ship_batch(node._compiled, engine, node._limits, wanted, now if node._takes_now else None)
