"""What a statement may name: tables, functions, types and operators, and what each needs."""

from __future__ import annotations

import pytest

from vesper.language.check.flow.sql import SqlProblem, help_for_placeholder, quoted_placeholders, read_sql


def needs(sql: str) -> set[str]:
    return set(read_sql(sql).capabilities) - {"database.read.users"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT upper(name) AS n, COALESCE(SUM(amount), 0) AS s FROM users GROUP BY 1 HAVING COUNT(*) > 1",
        "SELECT CAST(amount AS numeric(10, 2)) AS a, amount::double precision AS b, name::text[] AS c FROM users",
        "SELECT id FROM users WHERE at > timestamp with time zone '2026-01-01' AND d = DATE '2026-01-01'",
        "SELECT id FROM users WHERE name LIKE 'a%' ESCAPE '!' AND name NOT IN ('a', 'b') AND x = X'ff'",
        "SELECT EXTRACT(year FROM at) AS y, POSITION('a' IN name) AS p, TRIM(BOTH 'x' FROM name) AS t FROM users",
        "WITH t (a, b) AS (SELECT id, name FROM users) SELECT s.x FROM t AS s (x, y)",
        "SELECT id, row_number() OVER (PARTITION BY name ORDER BY id) AS r FROM users",
        "SELECT COUNT(*) FILTER (WHERE id > 1) AS c FROM users",
        "SELECT e AS e FROM users, jsonb_array_elements(users.tags) AS e",
        "SELECT u.id FROM users u, LATERAL (SELECT u.id + 1 AS next) s",
        "SELECT strftime('%Y', at) AS y, printf('%.2f', price) AS p, date(at) AS d FROM users",
        "SELECT id FROM users WHERE tags @> ARRAY['a', 'b'] AND data ->> 'x' = 'y' AND id=-1 AND n ~* '^a'",
        "SELECT id FROM users WHERE note = 'now' OR note = 'pg_read_file(1)' OR \"current_user\" = 'x'",
        "SELECT users.user AS user, id /* query_to_xml( */ FROM users -- pg_sleep(1)\nWHERE id = 1",
        'SELECT "lower"(name) AS n FROM users ORDER BY CASE WHEN id > 1 THEN (id) ELSE (0) END',
        "WITH RECURSIVE t AS (SELECT id FROM users UNION ALL SELECT id + 1 FROM t WHERE id < 9) SELECT id FROM t",
        "SELECT id FROM users WHERE at < interval '1 day' + timestamp '2026-01-01' AND z = at AT TIME ZONE 'UTC'",
        "SELECT id FROM users FETCH FIRST 1 ROWS ONLY",
        "SELECT t.k FROM users, jsonb_each(users.data) AS t(k, v)",
        "SELECT t.a FROM users, unnest(users.tags) WITH ORDINALITY AS t(a, n)",
        "SELECT g.n FROM users, generate_series(1, 2) g(n)",
        "SELECT CAST(name AS character varying(20)) AS n, at AT TIME ZONE ('UTC') AS t FROM users",
        "SELECT id FROM users GROUP BY GROUPING SETS ((id), ()) HAVING id IS DISTINCT FROM (1)",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) AS p FROM users",
        "WITH t AS NOT MATERIALIZED (SELECT id FROM users) SELECT id FROM t WHERE id = ANY (ARRAY[1, 2])",
        "SELECT substring(name FROM 'a' FOR 1) AS a, overlay(name PLACING 'x' FROM 1) AS b FROM users",
    ],
)
def test_pure_statement_needs_its_tables_only(sql: str) -> None:
    assert needs(sql) == set()


@pytest.mark.parametrize(
    "sql, name",
    [
        ("SELECT query_to_xml('select pw from secrets', true, true, '') AS x FROM users", "query_to_xml"),
        ("SELECT id FROM users WHERE pg_read_file ('/etc/passwd') = 'x'", "pg_read_file"),
        ("SELECT id FROM users ORDER BY PG_SLEEP(1)", "pg_sleep"),
        ('SELECT "pg_read_file"(name) AS x FROM users', "pg_read_file"),
        ('SELECT "Pg_Read_File"(name) AS x FROM users', "Pg_Read_File"),
        ('SELECT "LOWER"(name) AS x FROM users', "LOWER"),
        ("SELECT pg_read_file/* */(name) AS x FROM users", "pg_read_file"),
        ("SELECT pg_read_file--\n(name) AS x FROM users", "pg_read_file"),
        ("SELECT 'secrets'::regclass AS x FROM users", "regclass"),
        ("SELECT 'secrets' :: \"regclass\" AS x FROM users", "regclass"),
        ("SELECT CAST('secrets' AS regclass) AS x FROM users", "regclass"),
        ("SELECT CAST(CAST('secrets' AS text) AS regclass) AS x FROM users", "regclass"),
        ("SELECT regclass 'secrets' AS x FROM users", "regclass"),
        ("SELECT regclass('secrets') AS x FROM users", "regclass"),
        ("SELECT id FROM users, pg_ls_dir('.') AS f", "pg_ls_dir"),
        ("SELECT id FROM users, ROWS FROM (pg_ls_dir('.')) AS f", "pg_ls_dir"),
        ("SELECT id FROM users TABLESAMPLE bernoulli (10)", "bernoulli"),
        ("SELECT id FROM users, LATERAL dblink('x', 'y') AS t(a int)", "dblink"),
        ("SELECT xmlelement(name foo) AS x FROM users", "xmlelement"),
        ("SELECT current_user AS x FROM users", "current_user"),
        ("SELECT id FROM users WHERE at < CURRENT_TIMESTAMP", "current_timestamp"),
        ("SELECT id FROM users WHERE at < now()", "now"),
        ("SELECT id FROM users WHERE at < 'now'::timestamptz", "now"),
        ("SELECT id FROM users WHERE at < timestamp ' Today'", "now"),
        ("SELECT id FROM users WHERE at < CAST('now' AS date)", "now"),
        ("SELECT strftime('%Y') AS y FROM users", "strftime"),
        ("SELECT datetime('NOW') AS y FROM users", "datetime"),
        ("SELECT age(at) AS y FROM users", "age"),
        ("SELECT random() AS r FROM users", "random"),
        ("SELECT gen_random_uuid() AS r FROM users", "gen_random_uuid"),
        ("SELECT nextval('s') AS r FROM users", "nextval"),
        ("SELECT current_setting('x') AS r FROM users", "current_setting"),
        ("SELECT load_extension('x') AS r FROM users", "load_extension"),
        ("SELECT lo_import('x') AS r FROM users", "lo_import"),
        ("SELECT has_table_privilege('secrets', 'select') AS r FROM users", "has_table_privilege"),
        ("SELECT my_own(id) AS r FROM users", "my_own"),
        ("SELECT json_object('a': 'secrets' RETURNING regclass) AS r FROM users", "regclass"),
        ("SELECT id FROM users WHERE status = 'x'::order_status", "order_status"),
        (
            "WITH query_to_xml (x) AS (SELECT 1) SELECT query_to_xml('s', true, true, '') AS y FROM users",
            "query_to_xml",
        ),
    ],
)
def test_other_function_or_type_needs_a_capability_by_name(sql: str, name: str) -> None:
    assert needs(sql) == {f"database.function.{name}"}


def test_writes_need_functions_as_well() -> None:
    sql = "INSERT INTO users (id, user) VALUES (nextval('s'), 'x') ON CONFLICT (id) DO UPDATE SET user = lower('X')"
    assert read_sql(sql).capabilities == ("database.write.users", "database.function.nextval")
    assert read_sql("UPDATE users SET a = pg_backend_pid() WHERE id = 1").functions == ("pg_backend_pid",)
    assert read_sql("DELETE FROM users WHERE id = 1 RETURNING version()").functions == ("version",)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH secrets AS (SELECT pw FROM secrets) SELECT pw FROM secrets",
        "SELECT a, pw FROM (WITH secrets AS (SELECT 1 AS a) SELECT a FROM secrets) x, secrets",
        "WITH a AS (SELECT pw FROM secrets), secrets AS (SELECT 1 AS pw) SELECT pw FROM a",
        "WITH SECRETS AS (SELECT pw FROM Secrets) SELECT pw FROM secrets",
        'WITH "Secrets" AS (SELECT 1 AS pw) SELECT pw FROM secrets',
        "SELECT id FROM users UNION TABLE secrets",
        "SELECT id FROM users WHERE EXISTS (TABLE secrets)",
        "SELECT pw FROM ONLY secrets",
        "SELECT id FROM users LIMIT (SELECT pw FROM secrets)",
        "SELECT id FROM users, LATERAL (SELECT pw FROM secrets) s",
    ],
)
def test_table_behind_a_name_of_the_statement_is_seen(sql: str) -> None:
    assert "database.read.secrets" in read_sql(sql).capabilities


@pytest.mark.parametrize(
    "sql, part",
    [
        ("SELECT pg_catalog.pg_read_file('x') AS x FROM users", "`pg_read_file` with its schema"),
        ("SELECT 'x'::pg_catalog.regclass AS x FROM users", "type of the schema `pg_catalog`"),
        ("SELECT pg_catalog.regclass 'x' AS x FROM users", "cannot be read"),
        ("SELECT '{secrets}'::regclass[] AS x FROM users", "cannot be read"),
        ("SELECT regclass $$secrets$$ AS x FROM users", "cannot be read"),
        ("SELECT id OPERATOR(pg_catalog.+) 1 AS x FROM users", "OPERATOR"),
        ("SELECT id FROM users WHERE id @@@@ 1", "operator `@@@@`"),
        ("SELECT set_config('x', 'y', false) AS x FROM users", "set_config"),
        ('SELECT "a b"(id) AS x FROM users', "no capability"),
        ("SELECT id FROM users WHERE pw IN secrets", "IN without parentheses"),
        ("SELECT pw FROM users, LATERAL secrets", "LATERAL"),
        ("SELECT id FROM pg_authid", "system table `pg_authid`"),
        ('SELECT id FROM "SQLITE_master"', "system table"),
        ("SELECT id FROM pragma_database_list", "system table"),
        ("SELECT id FROM information_schema.tables", "schema"),
        ("SELECT id /* /* */ , (SELECT pw FROM secrets) /* */ */ FROM users", "comment inside a comment"),
        ("SELECT id FROM users -- x\r WHERE id = 1\nAND 1 = 1", "carriage return"),
        ("SELECT id FROM users WHERE a[' ] = 1 OR id IN (SELECT pw FROM secrets) --'] = 1", "SQLite reads as a name"),
        ("SELECT id FROM users WHERE a = E'\\' OR id IN (SELECT pw FROM secrets) --'", "SQLite ends it"),
        ("SELECT id FROM users {# , secrets #}", "'{'"),
        ("SELECT id\u00a0FROM users", "outside of quotes"),
        ("SELECT id\u2003FROM users", "outside of quotes"),
        ("SELECT id\vFROM users", "the space"),
        ("SELECT id FROM \u212aeys", "outside of quotes"),
        ("SELECT `id` FROM users", "outside of quotes"),
        ("SELECT U&'x' AS x FROM users", "U&"),
        ("SELECT id FROM users WHERE id = 1; SELECT 2", "one statement"),
        ("WITH x AS (DELETE FROM users RETURNING id) SELECT id FROM x", "DELETE inside"),
        ("COPY users TO '/tmp/x'", "must be a SELECT"),
        ("ATTACH DATABASE 'x' AS y", "cannot be read"),
        ("PRAGMA query_only = 0", "must be a SELECT"),
        ("DO $$ BEGIN END $$", "must be a SELECT"),
        ("SET role = x", "must be a SELECT"),
        ("CALL f()", "must be a SELECT"),
        ("VALUES (1)", "must be a SELECT"),
    ],
)
def test_statement_that_cannot_be_judged_is_refused(sql: str, part: str) -> None:
    with pytest.raises(SqlProblem) as found:
        read_sql(sql)
    assert part in str(found.value)


def test_query_without_a_table_needs_nothing_that_could_be_granted() -> None:
    assert read_sql("SELECT 1 AS x").capabilities == ()


@pytest.mark.parametrize(
    "where, found",
    [
        ("a = '{who}'", [("{who}", "write `:who` without quotes, and add `bind: [who]`")]),
        ("a = '${who}'", [("${who}", "write `:who` without quotes, and add `bind: [who]`")]),
        ("a = ':who'", [(":who", "write `:who` without quotes, and add `bind: [who]`")]),
        ("a = '{who.id}'", [("{who.id}", "write `:id` without quotes, and add `bind: {id: who.id}`")]),
        (
            "a LIKE '{who}%'",
            [("{who}", "write `:joined` in place of the string, and add `bind: {joined: \"who + '%'\"}`")],
        ),
        ("a = '{other}'", []),
        ("a = 'at :who'", []),
        ("b #>> '{who}' = 'a'", []),
        ("b = '{who}'::text[]", []),
    ],
)
def test_string_that_names_a_value_is_found(where: str, found: list[tuple[str, str]]) -> None:
    sql = "SELECT a FROM t WHERE " + where  # noqa: S608  # a text that no database reads
    assert list(quoted_placeholders(sql, {"who"})) == found


@pytest.mark.parametrize(
    "where, name",
    [("who = ?", "who"), ("a = ?", "name"), ("a = %s", "name"), ("a = {who}", "who"), ("a = @who", "who")],
)
def test_parameter_of_another_language_has_help(where: str, name: str) -> None:
    sql = "SELECT a FROM t WHERE " + where  # noqa: S608  # a text that no database reads
    with pytest.raises(SqlProblem):
        read_sql(sql)
    help_ = help_for_placeholder(sql, {"who"})
    assert help_ == f"write `:{name}` without quotes, and add `bind: [{name}]`"


def test_parameter_of_another_language_joins_the_given_ones() -> None:
    help_ = help_for_placeholder("SELECT a FROM t WHERE who = ?", {"who"}, has_bind=True)
    assert help_ == "write `:who` without quotes, and add `who` to `bind`"


def test_sql_without_a_parameter_of_another_language_has_no_help() -> None:
    assert help_for_placeholder("SELECT a FROM t WHERE a = '?' AND", {"who"}) is None
