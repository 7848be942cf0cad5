"""W1 over many records in columns: Vesper's `run_batch` beside polars and duckdb, on exact decimals.

How many threads polars takes is said before it is imported, so each number of threads is a process of its own:
`python tests/bench/batch.py --threads 1` prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.peers import by_hand  # noqa: E402  # after the path is set
from tests.bench.peers.present import NotHere, needed, version  # noqa: E402
from tests.bench.workloads import PLAIN, W1, Wrong, payments  # noqa: E402
from vesper.cli.bench.rounds import Timing, Way, interleaved  # noqa: E402

ROWS = 1_000_000
KINDS = 4_096
"""Different payments in a batch; they come again and again."""
OURS = "Vesper, run_batch"
ALONE, TWO = "Vesper, run_batch on one thread", "Vesper, run_batch on two threads"
"""Beside each other, and nobody else: what more threads are worth is a ratio of one measurement, and the threads of
other libraries look for work for a while after theirs is done."""
HALVES = "Vesper, run_batch of two halves, each on one thread"
"""At the same time, in two threads that share nothing but the machine: what a second processor is worth there, for work
that is the same. Other virtual machines use the same memory and caches, and take from it what they like."""
SECONDS_OF_THREADS = 12.0
"""Two processors are free at the same time only now and then where other virtual machines have their share of them: as
long as it takes for all three to meet such a moment."""


@dataclass(frozen=True)
class Columns:
    """A way to compute a whole batch."""

    name: str
    call: Callable[[Any], Any]
    table: Any
    rows: Callable[[Any, int], list[dict[str, Any]]]
    """The first rows of what came out."""


def arrow_table(rows: int) -> Any:
    """The payments as an Arrow table: decimals with two places, plain text."""
    arrow = needed("pyarrow", "pyarrow")
    found = payments(min(rows, KINDS))
    types = {
        "amount": arrow.decimal128(18, 2), "balance": arrow.decimal128(18, 2), "currency": arrow.string(),
        "country": arrow.string(), "user_age_days": arrow.int64(), "flagged": arrow.bool_(),
    }  # fmt: skip
    part = arrow.table({name: arrow.array([each[name] for each in found], type_) for name, type_ in types.items()})
    whole = arrow.concat_tables([part] * -(-rows // part.num_rows))
    return whole.slice(0, rows).combine_chunks()


def _arrow_rows(table: Any, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.slice(0, count).to_pylist()
    return found


def ours(table: Any, threads: int, name: str = OURS) -> Columns:
    import vesper
    from tests.bench.ours import fastest_engine

    node: Any = vesper.load(W1.file, engine=fastest_engine())
    if not hasattr(node, "run_batch"):
        raise NotHere("Vesper's run_batch is not in this build")

    def rows(result: Any, count: int) -> list[dict[str, Any]]:
        if result.column("error").null_count != result.num_rows:
            raise Wrong("run_batch: a row has an error")
        return _arrow_rows(result, count)

    return Columns(name, lambda given: node.run_batch(given, threads=threads), table, rows)


def polars(table: Any) -> Columns:
    pl = needed("polars", "polars")
    # Five places for what comes out, or it rounds; that the inputs have them from the start is in its favour.
    places = pl.Decimal(18, 5)
    frame = pl.from_arrow(table).with_columns(pl.col("amount", "balance").cast(places))
    amount, balance, fee, rest, risk = map(pl.col, ("amount", "balance", "fee", "new_balance", "risk"))

    def exact(text: str) -> Any:
        return pl.lit(Decimal(text)).cast(places)

    def points(condition: Any, number: int) -> Any:
        return pl.when(condition).then(number).otherwise(0)

    price = (
        pl.when(amount <= exact("100"))
        .then(amount * exact("0.029") + exact("0.30"))
        .when(amount <= exact("1000"))
        .then(amount * exact("0.025") + exact("0.50"))
        .otherwise(amount * exact("0.019") + exact("1.00"))
    )
    score = (
        points(pl.col("flagged"), 30)
        + points(pl.col("user_age_days") < 30, 20)
        + points(amount > exact("1000"), 20)
        + points(pl.col("country").is_in(["NG", "RU", "KP", "IR"]), 15)
        + points(amount + amount > balance, 15)
    )
    decision = pl.when((rest < exact("0")) | (risk >= 70)).then(pl.lit("decline"))
    decision = decision.when(risk >= 40).then(pl.lit("review")).otherwise(pl.lit("approve"))
    is_fine = (amount > exact("0")) & pl.col("currency").is_in(["USD", "EUR", "GBP"]) & (fee >= exact("0"))
    is_fine = is_fine & ((pl.col("decision") == "decline") | (rest >= exact("0")))

    def call(given: Any) -> Any:
        plan = given.lazy().with_columns(fee=price).with_columns(new_balance=balance - amount - fee, risk=score)
        plan = plan.with_columns(decision=decision).with_columns(is_fine=is_fine)
        return plan.select("decision", "fee", "risk", "new_balance", "is_fine").collect()

    def rows(result: Any, count: int) -> list[dict[str, Any]]:
        if not result["is_fine"].all():
            raise Wrong("polars: a row breaks a contract")
        found: list[dict[str, Any]] = result.head(count).to_dicts()
        return found

    return Columns(f"polars {version('polars')}, Decimal", call, frame, rows)


_SQL = """
select *, amount > 0 and currency in ('USD', 'EUR', 'GBP') and fee >= 0
          and (decision = 'decline' or new_balance >= 0) as is_fine
from (select *, case when new_balance < 0 or risk >= 70 then 'decline' when risk >= 40 then 'review' else 'approve' end
                as decision
      from (select *, balance - amount - fee as new_balance,
                   case when flagged then 30 else 0 end + case when user_age_days < 30 then 20 else 0 end
                   + case when amount > 1000 then 20 else 0 end
                   + case when country in ('NG', 'RU', 'KP', 'IR') then 15 else 0 end
                   + case when amount * 2 > balance then 15 else 0 end as risk
            from (select *, case when amount <= 100 then amount * 0.029 + 0.30
                                 when amount <= 1000 then amount * 0.025 + 0.50 else amount * 0.019 + 1.00 end as fee
                  from payments)))
"""


def duckdb(table: Any, threads: int) -> Columns:
    library = needed("duckdb", "duckdb")
    connection = library.connect(config={"threads": threads})
    connection.register("given", table)
    connection.execute("create table payments as select * from given")
    wanted = "select decision, fee, risk, new_balance, is_fine from"

    def call(_: Any) -> Any:
        return connection.sql(f"{wanted} ({_SQL})").to_arrow_table()

    def rows(result: Any, count: int) -> list[dict[str, Any]]:
        if not all(result.column("is_fine").to_pylist()):
            raise Wrong("duckdb: a row breaks a contract")
        return _arrow_rows(result, count)

    return Columns(f"duckdb {version('duckdb')}, DECIMAL", call, None, rows)


def check(columns: Columns, rows: int) -> None:
    """The first rows against the reference. Raises `Wrong`."""
    expected = [by_hand.payment_decision(each) for each in payments(min(rows, KINDS))][:200]
    for found, wanted in zip(columns.rows(columns.call(columns.table), len(expected)), expected, strict=True):
        for name, value in wanted.items():
            if found[name] != value:
                raise Wrong(f"{columns.name}: `{name}` is {found[name]!r}, not {value!r}")


def measured(rows: int, threads: int, rounds: int, *, only_ours: bool = False) -> tuple[dict[str, float], list[str]]:
    """Seconds a record, best of the rounds, of everybody and of a plain call; and who is missing."""
    table = arrow_table(rows)
    families: list[Callable[[], Columns]] = [lambda: ours(table, threads)]
    if not only_ours:
        families += [lambda: polars(table), lambda: duckdb(table, threads)]
    found, missing = [], []
    for family in families:
        try:
            found.append(family())
        except NotHere as problem:
            missing.append(str(problem))
    for each in found:
        check(each, rows)
    # A batch takes long enough to be disturbed. On one thread the time of the processor says the same, undisturbed.
    clock = time.process_time if threads == 1 else time.perf_counter
    ways = {each.name: Way(each.call, [each.table]) for each in found}
    # In turns with the batches, and for as long: a machine has other speeds from one minute to the next.
    ways[PLAIN] = Way(by_hand.payment_decision, W1.inputs)
    timings = interleaved(ways, rounds=rounds, seconds_a_round=0.05, clock=clock)
    return {name: timing.best / (1 if name == PLAIN else rows) for name, timing in timings.items()}, missing


def on_two_threads(table: Any, seconds: float = SECONDS_OF_THREADS) -> dict[str, Timing]:
    """Two threads beside one, and beside two that share nothing."""
    one, two = ours(table, 1, ALONE), ours(table, 2, TWO)
    for each in (one, two):
        check(each, table.num_rows)
    middle = table.num_rows // 2
    halves = [table.slice(0, middle), table.slice(middle)]
    with ThreadPoolExecutor(2) as pool:
        ways = {each.name: Way(each.call, [table]) for each in (one, two)}
        ways[HALVES] = Way(lambda given: list(pool.map(one.call, given)), [halves])
        return interleaved(ways, seconds=seconds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only-ours", action="store_true")
    asked = parser.parse_args()
    os.environ["POLARS_MAX_THREADS"] = str(asked.threads)
    best, missing = measured(asked.rows, asked.threads, asked.rounds, only_ours=asked.only_ours)
    told: dict[str, Any] = {"threads": asked.threads, "rows": asked.rows, "seconds": best, "missing": missing}
    if asked.threads == 2:
        timings = on_two_threads(arrow_table(asked.rows))
        told["beside_one"] = {name: timing.best / asked.rows for name, timing in timings.items()}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
