"""Rows that machine code runs in blocks, as words, beside the same rows run one by one as values."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import vesper
from tests.support.waiting import eventually
from tests.unit.batch.given import NODES, assert_same_as_calls, payments
from vesper.engines.direct_engine import DirectProgram
from vesper.engines.engine import Limits
from vesper.engines.tiering import VARIABLE

Pair = tuple[vesper.Node, vesper.Node]
Load = Callable[..., Pair]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """A node as machine code, made when it is loaded, and as what the interpreter runs."""

    def loaded(node: str | Path, **options: Any) -> Pair:
        monkeypatch.setenv(VARIABLE, "always")
        fast = vesper.load(node, nodes=NODES, engine="jit", **options)
        return fast, vesper.load(node, nodes=NODES, engine="interp", **options)

    return loaded


@pytest.fixture
def payment(load: Load) -> Pair:
    return load("payment_decision")


def expressed(node: vesper.Node) -> int:
    """How many rows gave outputs without a frame."""
    assert isinstance(node._program, DirectProgram)
    return next(iter(node._program.tier().plain.values())).expressed


def ran(pair: Pair, given: pa.Table, **wanted: Any) -> tuple[pa.Table, int]:
    """The answer, which is that of the ordinary way to the last word; and how many rows went without a frame."""
    fast, plain = pair
    before = expressed(fast)
    answer = fast.run_batch(given, **wanted)
    expected = plain.run_batch(given, **wanted)
    answer.validate(full=True)
    assert expected.schema == answer.schema
    assert answer.to_pylist() == expected.to_pylist()
    assert answer.equals(expected)
    assert expressed(plain) == 0
    return answer, expressed(fast) - before


def written(folder: Path, inputs: str, outputs: str, steps: str, more: str = "") -> Path:
    path = folder / "made_v1.vsp"
    names = ", ".join(re.findall(r"(\w+):", outputs))
    path.write_text(
        f"""node_id: made_v1
type: function
intent: Be run in blocks
{more}inputs: {{{inputs}}}
outputs:
  success: {{{outputs}}}
flow:
{steps}
  - {{operation: return, success: [{names}]}}
""",
        encoding="utf-8",
    )
    return path


def echo(folder: Path, type_: str) -> Path:
    return written(folder, f'v: "{type_}"', f'w: "{type_}"', "  - {operation: compute, step: w, value: v}")


# -- the rows of payments -------------------------------------------------------------------------


def test_every_row_that_is_fine_goes_without_a_frame(payment: Pair) -> None:
    given = payments(500, is_fine=True)
    answer, count = ran(payment, given, threads=1)
    assert count == 500
    assert assert_same_as_calls(payment[1], given, answer) == 0


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_that_are_not_are_the_ordinary_ones(payment: Pair, threads: int) -> None:
    given = payments(700)
    answer, count = ran(payment, given, threads=threads)
    assert 0 < count < 700
    assert assert_same_as_calls(payment[1], given, answer) > 100


def test_one_bad_row_among_many(payment: Pair) -> None:
    fine = payments(400, is_fine=True).to_pylist()
    for place, name, value in [
        (0, "amount", Decimal("-1.00")), (1, "currency", "XXX"), (127, "country", "DEU"), (128, "amount", None),
        (129, "flagged", None), (255, "balance", Decimal("9" * 30)), (256, "user_age_days", -1), (399, "country", None),
    ]:  # fmt: skip
        fine[place][name] = value
    schema = pa.schema([("amount", pa.decimal128(38, 2)), ("balance", pa.decimal128(38, 2))])
    rest = payments(1).schema
    given = pa.Table.from_pylist(fine, schema=pa.schema([*schema, *list(rest)[2:]]))
    answer, count = ran(payment, given, threads=1)
    assert count == 400 - 8
    errors = answer.column("error").to_pylist()
    assert [place for place, error in enumerate(errors) if error] == [0, 1, 127, 128, 129, 256, 399]


def test_slices_chunks_and_no_rows(payment: Pair) -> None:
    given = payments(900)
    whole = payment[1].run_batch(given)
    for start, length in [(0, 0), (1, 1), (7, 127), (3, 128), (5, 129), (11, 600), (899, 1)]:
        answer, _ = ran(payment, given.slice(start, length))
        assert answer.to_pylist() == whole.slice(start, length).to_pylist()
    chunks = [given.slice(0, 5), given.slice(5, 0), given.slice(5, 300), given.slice(305)]
    assert ran(payment, pa.concat_tables(chunks))[0].to_pylist() == whole.to_pylist()


def test_defaults_kept_columns_and_dictionaries(payment: Pair) -> None:
    given = payments(300, is_fine=True).drop_columns(["flagged"])
    for name in ("currency", "country"):
        place = given.column_names.index(name)
        given = given.set_column(place, name, given.column(name).combine_chunks().dictionary_encode())
    given = given.append_column("id", pa.array(range(300)))
    answer, count = ran(payment, given, keep=["id"], threads=1)
    assert count == 300
    assert answer.column("id").to_pylist() == list(range(300))


def test_parts_of_many_rows_are_run_on_several_threads(payment: Pair) -> None:
    given = pa.concat_tables([payments(9_000, 1, is_fine=True), payments(100), payments(31_000, 2, is_fine=True)])
    answer, count = ran(payment, given, threads=2)
    assert 39_000 < count < 40_100
    assert len(answer) == 40_100


def test_a_batch_makes_its_own_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "auto")
    node = vesper.load("payment_decision", nodes=NODES, engine="jit")
    given = payments(20_000, is_fine=True)

    def is_hot() -> bool:
        assert node.run_batch(given, threads=1).column("error").null_count == 20_000
        return expressed(node) > 0

    eventually(is_hot)


# -- columns of every type ------------------------------------------------------------------------

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)

COLUMNS: list[tuple[str, pa.Array]] = [
    ("boolean", pa.array([True, None, False])),
    *(("integer", pa.array([1, None, 100], getattr(pa, f"{sign}int{bits}")()))
      for sign in ("", "u") for bits in (8, 16, 32, 64)),
    ("integer", pa.array([2**63 - 1, 2**63, 3], pa.uint64())),
    ("decimal", pa.array([5, None, -(2**63)], pa.int64())),
    ("decimal", pa.array([5, 2**64 - 1], pa.uint64())),
    ("decimal", pa.array([Decimal("1.50"), None, Decimal("-999999.99")], pa.decimal32(9, 2))),
    ("decimal", pa.array([Decimal("1.50"), None, Decimal("-1.00")], pa.decimal64(18, 2))),
    ("decimal", pa.array([Decimal(2**63 - 1), Decimal(2**63), Decimal(-(2**63)), Decimal(-(2**63) - 1)],
                         pa.decimal128(38, 0))),
    ("decimal", pa.array([Decimal("0.00"), Decimal("9" * 36), None], pa.decimal128(38, 2))),
    ("float", pa.array([0.0, -0.0, None, float("inf"), 1e300])),
    ("float", pa.array([1.5, None, 0.1], pa.float32())),
    ("string", pa.array(["", "é\0x", None, "a" * 40])),
    ("string", pa.array(["a", None, "bc"], pa.large_string())),
    ("string", pa.array(["a", None, "longer than what a view holds"], pa.string_view())),
    ("string", pa.array(["a", None, "b", "a"]).dictionary_encode()),
    ("integer", pa.array([7, None, 9, 7]).dictionary_encode()),
    ("decimal", pa.array([Decimal("1.5"), None], pa.decimal128(5, 1)).dictionary_encode()),
    ("enum[a, b]", pa.array(["a", "z", None, "b"]).dictionary_encode()),
    ("enum[a, b]", pa.array(["a", "z", None, "b"])),
    ("enum[a, b]", pa.array(["a", "z", None, "b"], pa.string_view())),
    ("date", pa.array([date(2026, 2, 28), None, date(9999, 12, 31), date(1, 1, 1)])),
    ("date", pa.array([2_932_896, 2_932_897, -719_162, -719_163], pa.date32())),
    ("date", pa.array([0, None, -1, 86_400_000], pa.date64())),
    *(("timestamp", pa.array([NOON, None], pa.timestamp(unit, "UTC"))) for unit in ("s", "ms", "us", "ns")),
    ("timestamp", pa.array([1_000, 1_001, -1_000], pa.timestamp("ns", "UTC"))),
    ("timestamp", pa.array([253_402_300_799, 253_402_300_800], pa.timestamp("s", "UTC"))),
    *(("duration", pa.array([timedelta(days=3), None], pa.duration(unit))) for unit in ("s", "ms", "us", "ns")),
    ("duration", pa.array([2**62, 5], pa.duration("s"))),
]  # fmt: skip


@pytest.mark.parametrize("declared,column", COLUMNS, ids=[f"{number}-{of}" for number, (of, _) in enumerate(COLUMNS)])
def test_columns_of_every_type(tmp_path: Path, load: Load, declared: str, column: pa.Array) -> None:
    pair = load(echo(tmp_path, declared))
    for each in (column, column.slice(1)):
        ran(pair, pa.table({"v": each}), threads=1)
    _, count = ran(pair, pa.table({"v": pa.concat_arrays([column] * 70)}), threads=1)
    assert count >= 70


def test_a_dictionary_that_is_larger_than_its_rows(tmp_path: Path, load: Load) -> None:
    pair = load(echo(tmp_path, "string"))
    large = pa.DictionaryArray.from_arrays(pa.array([999, 3, None]), pa.array([f"text {n}" for n in range(1_000)]))
    answer, _ = ran(pair, pa.table({"v": large}))
    assert answer.column("w").to_pylist() == ["text 999", "text 3", None]


def test_members_that_look_alike(tmp_path: Path, load: Load) -> None:
    names = ["a", "ab", "abc", "abcd", "abcde", "abcdx", "abcdefgh", "abcdefghi", "abcdefghabcdefgh",
             "abcdefghxbcdefgh", "abcdefghabcdefghi", "a_name_that_is_longer_than_the_others"]  # fmt: skip
    pair = load(echo(tmp_path, f"enum[{', '.join(names)}]"))
    for given in (names, names[::-1], [*names, "abcdexgh", "abcdefgh\0", "b", ""]):
        answer, count = ran(pair, pa.table({"v": given * 20}), threads=1)
        assert count == len(names) * 20
        wanted = [name if name in names else None for name in given]
        assert answer.column("w").to_pylist() == wanted * 20


# -- what columns hold, and what runs may spend ---------------------------------------------------


def test_decimals_that_their_column_cannot_hold(tmp_path: Path, load: Load) -> None:
    pair = load(echo(tmp_path, "decimal"))
    given = pa.table({"v": pa.array([Decimal("1.2500"), Decimal("1.2345"), None, Decimal("-7.1000")] * 50,
                                    pa.decimal128(9, 4))})  # fmt: skip
    answer, _ = ran(pair, given, decimals=2)
    assert answer.column("w").to_pylist() == [Decimal("1.25"), None, None, Decimal("-7.10")] * 50
    assert answer.column("error").to_pylist()[1]["code"] == "does_not_fit"
    for digits in (0, 4, 22, 23, 35, 38):
        ran(pair, given, decimals=digits)
    assert ran(pair, given, decimals="text")[0].column("w").to_pylist()[0] == "1.2500"


def test_rows_whose_numbers_grow_too_long_give_up(tmp_path: Path, load: Load) -> None:
    steps = "  - {operation: compute, step: w, value: 'v * v + v'}"
    pair = load(written(tmp_path, "v: decimal", "w: decimal", steps))
    values = [place**9 for place in range(300)]
    given = pa.array([Decimal(value) for value in values], pa.decimal128(38, 0))
    answer, count = ran(pair, pa.table({"v": given}), threads=1)
    assert 0 < count < 300
    results = [value * value + value for value in values]
    assert answer.column("w").to_pylist() == [value if value < 10**38 else None for value in results]


def test_most_rows_that_give_up_let_the_rest_alone(payment: Pair) -> None:
    """Trying costs time too: where too many rows give up, nobody tries for a while, and then again."""
    bad = payments(1, is_fine=True).to_pylist()[0] | {"amount": Decimal("-1.00")}
    schema = payments(1).schema
    given = pa.concat_tables([pa.Table.from_pylist([bad] * 9_000, schema=schema), payments(30_000, is_fine=True)])
    answer, count = ran(payment, given, threads=1)
    assert answer.column("error").null_count == 30_000
    assert 20_000 < count < 30_000


LOOP = """  - operation: compute
    step: w
    value: "sum(y FOR y IN range(0, v, 1))"
"""


@pytest.mark.parametrize("limits", [Limits(fuel=100), Limits(seconds=60.0), Limits(seconds=1e-9)], ids=str)
def test_limits_hold_for_each_row(tmp_path: Path, load: Load, limits: Limits) -> None:
    pair = load(written(tmp_path, "v: integer", "w: integer", LOOP.rstrip()), limits=limits)
    ran(pair, pa.table({"v": [*range(90, 110), 0, 5_000, 3]}), threads=1)
