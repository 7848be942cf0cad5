"""The method `frame.vesper.run` of DataFrames, whichever library they are of."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from vesper.api.load import load
from vesper.api.node import Node

if TYPE_CHECKING:
    from vesper.batch.table import Decimals

FrameT = TypeVar("FrameT")


class Frame(Generic[FrameT]):
    """The namespace `vesper` of a DataFrame."""

    def __init__(self, frame: FrameT) -> None:
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
    ) -> FrameT:
        """Run a node on every row, and return a frame of its outputs, with a column of errors.

        `node` is a loaded node, or what `vesper.load` takes; `nodes` is the folder of names. The other options are
        those of `node.run_batch` (docs/how-to/run-batches.md).
        """
        found = node if isinstance(node, Node) else load(node, nodes=nodes)
        return found.run_batch(
            self._frame, keep=keep, decimals=decimals, error_column=error_column, threads=threads, now=now
        )
