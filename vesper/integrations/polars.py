"""`df.vesper.run("payment_decision")` for polars, also lazily: importing this module registers the namespaces."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from vesper.api.load import load
from vesper.api.node import Node
from vesper.integrations.frames import Frame

if TYPE_CHECKING:
    from vesper.batch.table import Decimals

pl.api.register_dataframe_namespace("vesper")(Frame)


@pl.api.register_lazyframe_namespace("vesper")
class LazyRows:
    """The namespace `vesper` of a LazyFrame."""

    def __init__(self, frame: pl.LazyFrame) -> None:
        self._frame = frame

    def run(
        self,
        node: Node | str | os.PathLike[str],
        /,
        *,
        nodes: str | os.PathLike[str] | None = None,
        keep: Iterable[str] = (),
        decimals: Decimals = None,
        error_column: str = "error",
        threads: int | None = None,
        now: datetime | str | None = None,
    ) -> pl.LazyFrame:
        """Add a node on every row to the plan; no row runs before the plan is collected, and it may be streamed.

        The schema of the answer is known at once. Options are those of `df.vesper.run`; `now` is by default the time
        of this call, for all rows.
        """
        found = node if isinstance(node, Node) else load(node, nodes=nodes)
        run = partial(
            found.run_batch,
            keep=list(keep),
            decimals=decimals,
            error_column=error_column,
            threads=threads,
            now=datetime.now(UTC) if now is None else now,
        )
        schema = run(self._frame.collect_schema().to_frame()).schema
        return self._frame.map_batches(run, schema=schema, streamable=True)
