"""Questions about rows of tables: the Rust engine is given the table, any other engine one row after the other.

Most rows are fine, so that machine code goes on with blocks of them; those between are what a row can be besides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal, Inexact
from typing import Any

import pyarrow as pa

from tests.proofs.mutants import scaled
from tests.support.nodes import small_node
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectProgram, outcome_of_raw
from vesper.engines.engine import Limits, Program
from vesper.engines.outcome import Outcome, Returned

_NAMES = "enum[abcde, abcdx, bcdef]"
_MISFIT = "does_not_fit"
_EXACT = Context(prec=80, traps=[Inexact])

NODE = small_node(
    f'n: {{type: integer, constraints: [{{max: 1000}}]}}\nv: decimal\ne: "{_NAMES}"\nt: string',
    "- {operation: compute, step: m, value: n + 1}\n"
    "- {operation: compute, step: w, value: v * 3 + 0.5}\n"
    "- {operation: compute, step: f, value: e}\n"
    "- {operation: compute, step: u, value: t}\n"
    "- {operation: return, success: [m, w, f, u]}",
    f'm: integer\nw: decimal\nf: "{_NAMES}"\nu: string',
)
PASSED_ON = small_node(
    "v: decimal", "- {operation: compute, step: w, value: v}\n- {operation: return, success: [w]}", "w: decimal"
)
"""Computes nothing that could be too long: what a cell was read as is what comes out. Its last row is fine: whoever
reads behind the table brings the whole part down, which is then run again in the ordinary way, where all is well."""
LOOP = small_node(
    "n: integer",
    "- {step: result, operation: compute, value: 'sum(y FOR y IN range(0, n, 1))'}\n"
    "- {operation: return, success: [result]}",
    "result: integer",
)


@dataclass(frozen=True)
class Rows:
    """A table, and how its answer is asked for."""

    name: str
    compiled: Compiled
    rows: Sequence[Mapping[str, Any]]
    types: Mapping[str, pa.DataType] = field(repr=False)
    digits: int | None = None
    """Of decimals after the point; None for texts."""
    limits: Limits | None = None

    def ask(self, program: Program) -> tuple[Outcome | str, ...]:
        if isinstance(program, DirectProgram):
            return tuple(self._by_table(program))
        return tuple(self._shown(program.call(dict(row), None, self.limits)) for row in self.rows)

    def _decimals(self) -> list[tuple[str, int]] | str:
        return "text" if self.digits is None else [("w", self.digits)]

    def _by_table(self, program: DirectProgram) -> list[Outcome | str]:
        outcomes: list[Outcome] = []

        def explain(raw: Any, _: object) -> tuple[str, str, None, str]:
            outcomes.append(outcome_of_raw(raw))
            return "", "", None, str(len(outcomes) - 1)

        table = pa.Table.from_pylist([dict(row) for row in self.rows], schema=pa.schema(list(self.types.items())))
        batches = program.batches(
            table, explain, form="typed", decimals=self._decimals(), keep=[], error_column="error", threads=1,
            now=None, limits=self.limits,
        )  # fmt: skip
        found: list[Outcome | str] = []
        for row in pa.table(batches).to_pylist():
            error = row.pop("error")
            if error is None:
                if "w" in row:
                    row["w"] = Decimal(row["w"])
                found.append(Returned(row))
            elif error["code"] == _MISFIT:
                found.append(_MISFIT)
            else:
                found.append(outcomes[int(error["message"])])
        return found

    def _shown(self, outcome: Outcome) -> Outcome | str:
        """As a column has it: a number has the digits of its column, or is none of it."""
        if not isinstance(outcome, Returned) or self.digits is None:
            return outcome
        number = outcome.value["w"]
        assert isinstance(number, Decimal)
        try:
            return Returned({**outcome.value, "w": number.quantize(Decimal(1).scaleb(-self.digits), context=_EXACT)})
        except Inexact:
            return _MISFIT


def _row(number: int, **changed: Any) -> dict[str, Any]:
    names = ("abcde", "abcdx", "bcdef")
    fine = {"n": number, "v": Decimal(number).scaleb(-2), "e": names[number % 3], "t": "ab"[: number % 3]}
    return {**fine, **changed}


_SPECIAL: Mapping[int, Mapping[str, Any]] = {
    3: {"n": None}, 4: {"n": 2**63 + 5}, 9: {"n": 1001}, 17: {"v": None}, 18: {"v": Decimal(2**63).scaleb(-2)},
    19: {"v": Decimal(-(2**63) - 1).scaleb(-2)}, 30: {"e": None}, 31: {"e": "abcdy"}, 32: {"e": "abcd"},
    47: {"t": None}, 59: {"n": 2**64 - 1},
}  # fmt: skip
_TYPES = {"n": pa.uint64(), "v": pa.decimal128(38, 2), "e": pa.string(), "t": pa.string()}
_ROWS = [_row(number, **_SPECIAL.get(number, {})) for number in range(60)]

TABLES: Sequence[Rows] = [
    Rows("texts", NODE, _ROWS, _TYPES),
    Rows("views", NODE, _ROWS, {**_TYPES, "e": pa.string_view(), "t": pa.large_string()}),
    *(Rows(f"digits {digits}", NODE, _ROWS, _TYPES, digits) for digits in (1, 2, 5, 18)),
    Rows("passed on", PASSED_ON, [{"v": row["v"]} for row in _ROWS], {"v": _TYPES["v"]}),
    Rows("fuel", LOOP, [{"n": n} for n in (3, 9, 10, 11, 12, 0)], {"n": pa.int64()}, limits=Limits(10)),
    *(
        Rows(f"sums of scales {scales}", scaled.SUMS, scaled.pairs(scales), scaled.decimals(scales))
        for scales in scaled.SCALES
    ),
    *(
        Rows(
            f"ways of scales {scales}",
            scaled.WAYS,
            scaled.numbered(scales),
            {**scaled.decimals(scales), "n": pa.int64()},
        )
        for scales in scaled.SCALES
    ),
    *(
        Rows(
            f"rates of scale {scale}",
            scaled.RATES,
            scaled.rated(scale),
            {"v": pa.decimal64(18, scale), "t": pa.string()},
        )
        for scale in (0, 1, 4)
    ),
    *(
        Rows(f"short texts, {first}", scaled.TEXTS, scaled.texts(), {"s": first, "t": pa.string()})
        for first in (pa.string(), pa.string_view(), pa.large_string())
    ),
    Rows("time", LOOP, [{"n": n} for n in (0, 3, 10)], {"n": pa.int64()}, limits=Limits(seconds=1e-9)),
]


def asking() -> list[tuple[str, Compiled, Callable[[Program], Any], Rows]]:
    """What each question is called, which node it asks, how, and about what."""
    return [(f"batch {each.name}", each.compiled, each.ask, each) for each in TABLES]
