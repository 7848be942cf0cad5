from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import click
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import vesper
from tests.unit.api.given import ASKING
from tests.unit.batch.given import NODES, TYPES, assert_same_as_calls, echo, given_rows, orders, payments, written
from vesper.batch.table import MAX_THREADS
from vesper.cli.run.command import command as run_command


@pytest.fixture(scope="module")
def payment() -> vesper.Node:
    return vesper.load("payment_decision", nodes=NODES, engine="interp")


# -- what a row comes to --------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_what_calls_are(payment: vesper.Node, threads: int) -> None:
    given = payments(300)
    answer = payment.run_batch(given, threads=threads)
    assert answer.schema.field("fee").type == pa.decimal128(38, 5)
    assert 100 < assert_same_as_calls(payment, given, answer) < 290


def test_what_is_no_time_is_refused_though_a_function_has_no_start(payment: vesper.Node) -> None:
    with pytest.raises(ValueError, match=r'now="x": .*give a datetime with a time zone'):
        payment.run_batch(pa.table({}), now="x")


def test_scales_of_one_column_are_those_of_calls(payment: vesper.Node) -> None:
    given = payments(50, is_fine=True)
    for inputs, found in zip(given_rows(given), payment.run_batch(given).to_pylist(), strict=True):
        assert str(found["fee"]) == str(payment.call(inputs)["fee"])


def test_lists_of_records_are_read_and_checked() -> None:
    node = vesper.load("order_pricing", nodes=NODES, engine="interp")
    given = orders(200)
    answer = node.run_batch(given)
    assert answer.schema.field("total").type == pa.decimal128(38, 4)
    assert 5 < assert_same_as_calls(node, given, answer) < 190


@pytest.mark.parametrize("name", sorted(TYPES))
def test_every_type_goes_in_and_out(tmp_path: Path, name: str) -> None:
    _, column, values = TYPES[name]
    node = echo(tmp_path, name)
    # A null does not fit but where the type is optional.
    given = pa.table({"v": pa.array([*values, None], column)})
    answer = node.run_batch(given)
    assert assert_same_as_calls(node, given, answer) == (0 if name == "o" else 1)


def test_json_comes_out_as_its_text(tmp_path: Path) -> None:
    node = echo(tmp_path, declared="json")
    given = pa.table({"v": pa.array([{"b": [1, None], "a": "x"}])})
    assert node.run_batch(given).to_pylist() == [{"w": '{"a":"x","b":[1,null]}', "error": None}]


@pytest.mark.parametrize(
    "declared,column",
    [
        ("decimal", pa.array([1.5])),
        ("decimal", pa.array(["1.50", "x"])),
        ("decimal", pa.array([Decimal(12300)], pa.decimal128(5, -2))),
        ("decimal", pa.array([Decimal("9" * 60)], pa.decimal256(76, 0))),
        ("decimal", pa.array([2**64 - 1], pa.uint64())),
        ("integer", pa.array([2**64 - 1, 3], pa.uint64())),
        ("integer", pa.array([1, -2], pa.int8())),
        ("integer", pa.array(["1"])),
        ("float", pa.array([2**53 + 1, 4], pa.int64())),
        ("float", pa.array([1.5], pa.float32())),
        ("timestamp", pa.array([datetime(2026, 1, 1)], pa.timestamp("ms"))),  # noqa: DTZ001
        ("timestamp", pa.array(["2026-01-01T00:00:00Z", "yesterday"])),
        ("date", pa.array([0], pa.date64())),
        ("string", pa.array(["a", "b", "a"]).dictionary_encode()),
        ("enum[a, b]", pa.array(["a", "z", None, "b"]).dictionary_encode()),
        ("enum[a, b]", pa.array(["a", "b"], pa.large_string())),
        ("optional<string>", pa.array([None, None], pa.null())),
        ("boolean", pa.array([None, None], pa.bool_())),
        ("string", pa.array(["a", "b"], pa.string_view())),
        ("array<integer>", pa.array([[1, None], None, [3]], pa.large_list(pa.int64()))),
        ("array<integer>", pa.array([[1, 2]], pa.list_(pa.int64(), 2))),
        ("set<integer>", pa.array([[1, 1], [2]])),
        ("bytes", pa.array([b"ab"], pa.binary(2))),
    ],
    ids=lambda each: each if isinstance(each, str) else str(each.type),
)
def test_columns_of_other_types_are_what_calls_say(tmp_path: Path, declared: str, column: pa.Array) -> None:
    node = echo(tmp_path, declared=declared)
    given = pa.table({"v": column})
    answer = node.run_batch(given, decimals="text")
    if "decimal" in declared:
        texts = answer.column("w").to_pylist()
        numbers = pa.array([None if text is None else Decimal(text) for text in texts], pa.decimal256(76, 2))
        answer = answer.set_column(0, "w", numbers)
    assert_same_as_calls(node, given, answer)


# -- decimals -------------------------------------------------------------------------------------


def test_a_number_that_its_column_cannot_hold_is_an_error_of_its_row(tmp_path: Path) -> None:
    node = echo(tmp_path, "c")
    given = pa.table({"v": pa.array([Decimal("1.2500"), Decimal("1.2345")], pa.decimal128(9, 4))})
    answer = node.run_batch(given, decimals=2)
    assert answer.column("w").to_pylist() == [Decimal("1.25"), None]
    first, second = answer.column("error").to_pylist()
    assert first is None
    assert second["code"] == "does_not_fit"
    assert "`w` is 1.2345" in second["message"]


def test_without_a_bound_on_digits_decimals_are_texts(tmp_path: Path) -> None:
    node = echo(tmp_path, "c")
    answer = node.run_batch(pa.table({"v": ["1.50", "2"]}))
    assert answer.column("w").to_pylist() == ["1.50", "2"]
    said = node.run_batch(pa.table({"v": ["1.50", "2"]}), decimals={"w": 3})
    assert said.column("w").to_pylist() == [Decimal("1.500"), Decimal("2.000")]


def test_rounding_gives_a_bound(tmp_path: Path) -> None:
    text = """type: function
intent: Share and round
inputs: {v: decimal, n: integer}
outputs:
  success: {fixed: decimal, loose: decimal, product: decimal}
flow:
  - operation: compute
    compute:
      fixed: round(v / 3.0, 2, 'half_up')
      loose: round(v, n, 'half_up')
      product: v * v
  - {operation: return, success: [fixed, loose, product]}
"""
    node = written(tmp_path, "rounded_v1", text)
    answer = node.run_batch(pa.table({"v": pa.array([Decimal("1.00")], pa.decimal128(9, 2)), "n": [1]}))
    assert [str(field.type) for field in answer.schema][:3] == ["decimal128(38, 2)", "string", "decimal128(38, 4)"]
    assert answer.to_pylist()[0]["loose"] == "1.0"


# -- shapes of tables -----------------------------------------------------------------------------


def test_no_row_one_row_slices_and_chunks(payment: vesper.Node) -> None:
    given = payments(60)
    whole = payment.run_batch(given)
    assert payment.run_batch(given.slice(0, 0)).schema == whole.schema
    assert len(payment.run_batch(given.slice(0, 0))) == 0
    assert payment.run_batch(given.slice(7, 1)).to_pylist() == whole.slice(7, 1).to_pylist()
    assert payment.run_batch(given.slice(13, 29)).to_pylist() == whole.slice(13, 29).to_pylist()
    chunked = pa.concat_tables([given.slice(0, 5), given.slice(5, 0), given.slice(5)])
    assert payment.run_batch(chunked).to_pylist() == whole.to_pylist()
    (batch,) = given.slice(3, 9).combine_chunks().to_batches()
    found = payment.run_batch(batch)
    assert isinstance(found, pa.RecordBatch)
    assert found.to_pylist() == whole.slice(3, 9).to_pylist()


def test_more_rows_than_a_thread_takes_at_a_time_come_in_order(tmp_path: Path) -> None:
    node = echo(tmp_path, "b")
    given = pa.table({"v": pa.array(range(70_001))})
    for threads in (1, 2):
        assert node.run_batch(given, threads=threads).column("w").to_pylist() == list(range(70_001))


def test_an_array_of_records_is_a_table(tmp_path: Path) -> None:
    class Given:
        def __arrow_c_array__(self, requested_schema: object = None) -> object:
            return pa.array([{"v": 1}, {"v": 2}]).__arrow_c_array__()

    answer = echo(tmp_path, "b").run_batch(Given())
    assert pa.table(answer).column("w").to_pylist() == [1, 2]
    with pytest.raises(ValueError, match="can be read once"):
        pa.table(answer)


def test_a_stream_is_run_as_it_is_read(tmp_path: Path) -> None:
    node = echo(tmp_path, "b")
    asked = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal asked
        for _ in range(100):
            asked += 1
            yield pa.record_batch({"v": pa.array(range(10_000))})

    before = pa.total_allocated_bytes()
    stream = pa.RecordBatchReader.from_batches(pa.schema([("v", pa.int64())]), batches())
    answer = node.run_batch(stream, threads=1)
    assert isinstance(answer, pa.RecordBatchReader)
    assert asked == 0
    rows = 0
    for batch in answer:
        rows += len(batch)
        # What is read ahead is bounded, however long the stream is.
        assert asked * 10_000 <= rows + 80_000
        assert pa.total_allocated_bytes() - before < 8_000_000
    assert rows == 1_000_000


def test_an_error_of_a_stream_ends_the_answer(tmp_path: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"v": [1]})
        raise OSError("the disk is gone")

    stream = pa.RecordBatchReader.from_batches(pa.schema([("v", pa.int64())]), batches())
    with pytest.raises(Exception, match="the disk is gone"):
        echo(tmp_path, "b").run_batch(stream).read_all()


# -- the libraries --------------------------------------------------------------------------------


def test_polars_gives_polars(payment: vesper.Node) -> None:
    given = payments(40)
    answer = payment.run_batch(pl.DataFrame(given))
    assert isinstance(answer, pl.DataFrame)
    assert answer["fee"].dtype == pl.Decimal(38, 5)
    assert answer.to_dicts() == payment.run_batch(given).to_pylist()


def test_pandas_gives_pandas_with_its_index(payment: vesper.Node) -> None:
    given = payments(40, is_fine=True)
    frame = given.to_pandas()
    frame.index = pd.Index(range(100, 140), name="row")
    answer = payment.run_batch(frame)
    assert isinstance(answer, pd.DataFrame)
    assert list(answer.index) == list(range(100, 140))
    assert list(answer["fee"]) == payment.run_batch(given).column("fee").to_pylist()
    assert answer["error"].isna().all()


def test_duckdb_gives_a_relation_of_its_connection(payment: vesper.Node) -> None:
    given = payments(40)
    with duckdb.connect() as connection:
        answer = payment.run_batch(connection.sql("SELECT * FROM given"))
        assert answer.aggregate("count(*), count(error)").fetchall() == [
            (
                40,
                40 - payment.run_batch(given).column("error").null_count,
            )
        ]


def test_nothing_of_arrow_is_imported_for_a_table_that_speaks_it() -> None:
    code = (
        "import sys, vesper; from vesper.batch import kinds, table; "
        "print([name for name in ('pyarrow', 'polars', 'pandas', 'duckdb', 'numpy') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


# -- what is refused ------------------------------------------------------------------------------


def test_columns_and_inputs_must_go_together(payment: vesper.Node) -> None:
    given = payments(3, is_fine=True)
    with pytest.raises(vesper.BatchError, match=r"no column for `amount`, `country`"):
        payment.run_batch(given.drop_columns(["amount", "country"]))
    with pytest.raises(vesper.BatchError, match=r"no input is called `flaged`.*keep.*did you mean `flagged`"):
        payment.run_batch(given.rename_columns([*given.column_names[:-1], "flaged"]))
    assert payment.run_batch(given.drop_columns(["flagged"])).column("error").null_count == 3
    with pytest.raises(vesper.BatchError, match="`keep` names `id`"):
        payment.run_batch(given, keep=["id"])
    with pytest.raises(TypeError, match=r'keep=\["id"\]'):
        payment.run_batch(given, keep="id")


def test_kept_columns_come_first_and_unread(payment: vesper.Node) -> None:
    given = payments(3, is_fine=True).append_column("id", pa.array(["a", "b", "c"]))
    answer = payment.run_batch(given, keep=["id", "amount"])
    assert answer.column_names[:3] == ["id", "amount", "decision"]
    assert answer.column("id").to_pylist() == ["a", "b", "c"]
    clashing = given.rename_columns([*given.column_names[:-1], "fee"])
    with pytest.raises(vesper.BatchError, match="two columns of the answer would be called `fee`"):
        payment.run_batch(clashing, keep=["fee"])
    assert payment.run_batch(given, keep=["id"], error_column="why").column_names[-1] == "why"


def test_the_command_takes_as_many_threads_as_a_batch() -> None:
    [option] = [each for each in run_command.params if each.name == "threads"]
    assert isinstance(option.type, click.IntRange)
    assert (option.type.min, option.type.max) == (1, MAX_THREADS)


def test_words_that_mean_nothing_are_refused(payment: vesper.Node) -> None:
    given = payments(1, is_fine=True)
    with pytest.raises(TypeError, match="not list"):
        payment.run_batch([1])
    for threads in (0, 1_025, 2**40, 2**70):
        with pytest.raises(ValueError, match="threads is a number from 1 to 1,024"):
            payment.run_batch(given, threads=threads)
    with pytest.raises(TypeError, match='decimals is "text"'):
        payment.run_batch(given, decimals="exact")  # type: ignore[arg-type]  # that is what is tested
    with pytest.raises(ValueError, match="from 0 to 38"):
        payment.run_batch(given, decimals=39)
    with pytest.raises(vesper.BatchError, match="`decimals` names `risk`"):
        payment.run_batch(given, decimals={"risk": 2})


def test_a_node_without_a_named_engine_runs_tables_on_the_direct_one() -> None:
    table = payments(3)
    unnamed = vesper.load("payment_decision", nodes=NODES)
    assert unnamed.engine == "python"
    assert unnamed.run_batch(table).equals(
        vesper.load("payment_decision", nodes=NODES, engine="interp").run_batch(table)
    )


def test_effects_and_other_engines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(vesper.BatchError, match='engine="interp"'):
        vesper.load("payment_decision", nodes=NODES, engine="python").run_batch(payments(1))
    path = tmp_path / "asking_v1.vsp"
    path.write_text(ASKING, encoding="utf-8")
    with pytest.raises(vesper.BatchError, match="has effects"):
        vesper.load(path, engine="interp").run_batch(pa.table({"x": [1]}))


def test_limits_and_failures_are_errors_of_their_rows(tmp_path: Path) -> None:
    text = """type: function
intent: Divide
inputs: {v: integer}
outputs:
  success: {w: integer}
flow:
  - {operation: compute, step: w, value: "mod(10, v)"}
  - {operation: return, success: [w]}
"""
    node = written(tmp_path, "dividing_v1", text)
    given = pa.table({"v": [5, 0, 0, 2]})
    answer = node.run_batch(given)
    assert assert_same_as_calls(node, given, answer) == 2
    assert answer.column("error").to_pylist()[1]["code"] == "division_by_zero"
