"""Parameters are found where they are, and nowhere else."""

from __future__ import annotations

import pytest

from vesper.effects.database.statements import facts_of
from vesper.effects.performer import EffectFailed


def divided(sql: str, kind: str) -> tuple[str, set[str]]:
    """Return the text with `{name}` for each parameter, and the parameters."""
    pieces = facts_of(sql, kind).pieces
    text = "".join(f"{{{part}}}" if is_parameter else part for is_parameter, part in pieces)
    return text, {part for is_parameter, part in pieces if is_parameter}


SAME_IN_BOTH = [
    ("SELECT :a", {"a"}),
    ("SELECT ':a'", set()),
    ("SELECT 'it''s :a', :b", {"b"}),
    ('SELECT "x:a" FROM t', set()),
    ('SELECT "x"":a" FROM t', set()),
    ("SELECT 1 -- :a\n, :b", {"b"}),
    ("SELECT 1 /* :a */ , :b", {"b"}),
    ("SELECT 1 /* ' */ , :b /* ' */", {"b"}),
    ("SELECT :a+:a, :a_1", {"a", "a_1"}),
    ("SELECT :a;", {"a"}),
    ("SELECT :a ; ; -- the end\n", {"a"}),
    ("SELECT a FROM t WHERE b LIKE '%:x%' AND c = :c", {"c"}),
    ("SELECT '--' , :a", {"a"}),
    ("SELECT '\\', :a", {"a"}),
]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("sql, parameters", SAME_IN_BOTH)
def test_parameters(sql: str, parameters: set[str], kind: str) -> None:
    assert divided(sql, kind)[1] == parameters


@pytest.mark.parametrize(
    "sql, text, parameters",
    [
        ("SELECT '1'::int, :a::text", "SELECT '1'::int, {a}::text", {"a"}),
        ("SELECT E'\\':a', :b", "SELECT E'\\':a', {b}", {"b"}),
        ("SELECT e'\\\\', :b", "SELECT e'\\\\', {b}", {"b"}),
        ("SELECT $$ :a ; ' $$, :b", "SELECT $$ :a ; ' $$, {b}", {"b"}),
        ("SELECT $x$ $$ :a $y$ $x$, :b", "SELECT $x$ $$ :a $y$ $x$, {b}", {"b"}),
        ("SELECT a$b$c, :b", "SELECT a$b$c, {b}", {"b"}),
        ("SELECT 1 /* /* :a */ :c */, :b", "SELECT 1 /* /* :a */ :c */, {b}", {"b"}),
        ("SELECT 5 % 2, '%s', '%(a)s', :b", "SELECT 5 % 2, '%s', '%(a)s', {b}", {"b"}),
        ("SELECT type'x', :b", "SELECT type'x', {b}", {"b"}),
        ("SELECT doc ? 'a', :b FROM t", "SELECT doc ? 'a', {b} FROM t", {"b"}),
    ],
)
def test_postgres(sql: str, text: str, parameters: set[str]) -> None:
    assert divided(sql, "postgres") == (text, parameters)


@pytest.mark.parametrize(
    "sql, parameters",
    [
        ("SELECT [x:a], :b FROM t", {"b"}),
        ("SELECT `x:a`, :b FROM t", {"b"}),
        ("SELECT 1 /*/ :a */, :b", {"b"}),
        ("SELECT E'\\', :b", {"b"}),
    ],
)
def test_sqlite_leaves_the_text_as_it_is(sql: str, parameters: set[str]) -> None:
    text, found = divided(sql, "sqlite")
    assert (text.format_map({name: f":{name}" for name in found}), found) == (sql, parameters)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE t",
        "SELECT 1;;DROP TABLE t",
        "SELECT 1 /* ; */ ; -- x\nDELETE FROM t",
        "",
        "  -- nothing",
        ";",
        "SELECT 'x",
        "SELECT 'x''",
        'SELECT "x',
        "SELECT 1 /* x",
        "SELECT 1\0",
        "SELECT '\0'",
        "SELECT 1 -- the end",
        "DELETE FROM t -- what was on the next line WHERE id = 1",
    ],
)
def test_refused_in_both(sql: str, kind: str) -> None:
    with pytest.raises(EffectFailed, match="its SQL"):
        facts_of(sql, kind)


@pytest.mark.parametrize(
    "sql, kind",
    [
        ("SELECT ?", "sqlite"),
        ("SELECT ?1", "sqlite"),
        ("SELECT @a", "sqlite"),
        ("SELECT $a", "sqlite"),
        ("SELECT $1", "postgres"),
        ("SELECT set_config('timezone', 'x', false)", "postgres"),
        ("SELECT Set_Config ('timezone', 'x', false)", "postgres"),
        ("SELECT pg_catalog.\"set_config\"('timezone', 'x', false)", "postgres"),
        ("SELECT U&\"\\0073et_config\"('timezone', 'x', false)", "postgres"),
        ("SELECT $$x", "postgres"),
        ("SELECT $a$x$b$", "postgres"),
        ("SELECT E'x\\'", "postgres"),
        ("SELECT 1 /* /* */", "postgres"),
        ("SELECT `x", "sqlite"),
        ("SELECT 1 /* /* :a */, :b", "sqlite"),
        ("SELECT a::text FROM t", "sqlite"),
    ],
)
def test_refused(sql: str, kind: str) -> None:
    with pytest.raises(EffectFailed, match="its SQL"):
        facts_of(sql, kind)


def test_a_hostile_text_takes_no_longer_than_its_length() -> None:
    for text in ("'" * 200_001, "/*" * 100_000, "E'\\" * 50_000, ":" * 200_000 + "a", '"' * 200_001):
        try:
            facts_of(f"SELECT {text}", "postgres")
        except EffectFailed:
            continue
