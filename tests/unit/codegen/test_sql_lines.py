"""SQL is broken where a person would break it, and stays the same statement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.codegen.layout.sql_lines import MAX_LINE_CHARACTERS, sql_lines


@pytest.mark.parametrize(
    "sql, lines",
    [
        ("SELECT a FROM b WHERE c = 1", ["SELECT a ", "FROM b ", "WHERE c = 1"]),
        (
            "SELECT a FROM b LEFT JOIN c ON c.id = b.id ORDER BY a LIMIT 1",
            ["SELECT a ", "FROM b ", "LEFT JOIN c ON c.id = b.id ", "ORDER BY a ", "LIMIT 1"],
        ),
        ("SELECT (SELECT a FROM b) FROM c", ["SELECT (SELECT a FROM b) ", "FROM c"]),
        ("SELECT ' FROM ' FROM b", ["SELECT ' FROM ' ", "FROM b"]),
        ("SELECT 'it''s FROM' FROM b", ["SELECT 'it''s FROM' ", "FROM b"]),
        ("SELECT a\nFROM b\n", ["SELECT a\n", "FROM b\n"]),
        ("SELECT from_date FROM b", ["SELECT from_date ", "FROM b"]),
        ("", []),
    ],
)
def test_lines(sql: str, lines: list[str]) -> None:
    assert sql_lines(sql) == lines


def test_a_long_list_is_filled() -> None:
    columns = ", ".join(f"column_{number}" for number in range(30))
    sql = f"VALUES ({columns})"
    lines = sql_lines(sql)
    assert "".join(lines) == sql
    assert all(len(line.rstrip()) <= MAX_LINE_CHARACTERS for line in lines)


@given(st.text(alphabet="SELCTFROMWH 'a\"(),\n=:", max_size=200))
def test_the_lines_are_the_statement(sql: str) -> None:
    assert "".join(sql_lines(sql)) == sql
