"""Run one table through a node: check the options, run the engine, and return a table of the same kind.

Imports no table library: the library of a given table is imported already.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from vesper.batch.errors import BatchError
from vesper.batch.kinds import answer_like, as_stream
from vesper.engines.direct_engine import Batches, Explain
from vesper.language.diagnostics.suggest import did_you_mean

if TYPE_CHECKING:
    from vesper.engines.direct_engine import DirectProgram
    from vesper.engines.engine import Limits

Form = Literal["typed", "spelled", "json"]
"""The form of the columns: typed; texts of any type, as in a CSV file; one column of JSON texts."""

Decimals = Literal["text"] | int | Mapping[str, int] | None
"""The form of decimals: texts, a number of digits after the point, or as the node and the columns have it."""

MAX_DIGITS = 38
MAX_THREADS = 1_024
"""Each thread has buffers of its own, so a larger number is a mistake."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of a batch."""

    threads: int | None = None
    """None is the number of processors of this process."""
    keep: Iterable[str] = ()
    decimals: Decimals = None
    error_column: str = "error"
    form: Form = "typed"


@dataclass(frozen=True, slots=True)
class Declared:
    """The declaration of the node."""

    node_id: str
    inputs: tuple[str, ...]
    decimals: tuple[str, ...]
    """The outputs with decimals."""


def run_table(
    program: DirectProgram,
    declared: Declared,
    table: object,
    wanted: Wanted,
    explain: Explain,
    now: datetime | None,
    limits: Limits | None,
    look_at: Callable[[Batches], None] | None = None,
) -> Any:
    """Run every row of a table, and return a table of the same kind.

    `look_at` receives the batches before any of them runs, to subscribe to rows.
    """
    keep = _names(wanted.keep)
    batches = begin(program, declared, as_stream(table), replace(wanted, keep=keep), explain, now, limits)
    if look_at is not None:
        look_at(batches)
    return answer_like(table, batches, keep)


def begin(
    program: DirectProgram,
    declared: Declared,
    stream: object,
    wanted: Wanted,
    explain: Explain,
    now: datetime | None,
    limits: Limits | None,
) -> Batches:
    """Return the answer as a stream, before any row runs."""
    keep, threads, decimals = _names(wanted.keep), _threads(wanted.threads), _decimals(wanted.decimals, declared)
    try:
        return program.batches(
            stream,
            explain,
            form=wanted.form,
            decimals=decimals,
            keep=keep,
            error_column=wanted.error_column,
            threads=threads,
            now=now,
            limits=limits,
        )
    except ValueError as error:
        raise BatchError(_refusal(error, declared)) from None


def _names(keep: Iterable[str]) -> list[str]:
    if isinstance(keep, str):
        raise TypeError(f'keep is a list of names of columns: keep=["{keep}"]')
    names = list(keep)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"keep is a list of names of columns, and {name!r} is no name")
    return names


def _threads(threads: int | None) -> int:
    if threads is None:
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(processors, MAX_THREADS)
    if type(threads) is not int or not 1 <= threads <= MAX_THREADS:
        raise ValueError(f"threads is a number from 1 to {MAX_THREADS:,}, not {threads!r}")
    return threads


def _decimals(decimals: Decimals, declared: Declared) -> Literal["text"] | list[tuple[str, int]] | None:
    if decimals is None or decimals == "text":
        return decimals
    if isinstance(decimals, int) and not isinstance(decimals, bool):
        return [(name, _digits(decimals)) for name in declared.decimals]
    if isinstance(decimals, Mapping):
        return [(str(name), _digits(digits)) for name, digits in decimals.items()]
    raise TypeError(
        f'decimals is "text", a number of digits after the point, or such a number for an output by name, '
        f"not {decimals!r}"
    )


def _digits(digits: object) -> int:
    if type(digits) is not int or not 0 <= digits <= MAX_DIGITS:
        raise ValueError(f"decimals has from 0 to {MAX_DIGITS} digits after the point, not {digits!r}")
    return digits


def _refusal(error: ValueError, declared: Declared) -> str:
    """Return the engine's refusal of a table, with the name that was probably meant."""
    match error.args:
        case (str(message), str(kind), list(names)):
            hints = []
            if kind == "no_input":
                hints = [hint for name in names if (hint := did_you_mean(name, declared.inputs))]
            said = f"{declared.node_id}: {message}"
            return f"{said} ({'; '.join(hints)})" if hints else said
    return f"{declared.node_id}: {error}"
