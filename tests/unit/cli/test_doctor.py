"""`vesper doctor`: grants that match nothing, databases out of reach, roles with too many rights."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from tests.support.servers import Postgres, free_port
from vesper.cli.doctor import installation
from vesper.cli.doctor.finding import Finding
from vesper.cli.doctor.installation import check_installation
from vesper.cli.main import vesper

ROOT = Path(__file__).parents[3]
NODE = """\
node_id: find_user_v1
type: data_transform
intent: Look up the names of users
inputs:
  ids: array<string>
outputs:
  success:
    count: integer
flow:
  - step: names
    operation: database_query
    query: SELECT name FROM users
    returns: array<string>
  - operation: return
    success:
      count: length(names)
security:
  capabilities_required: [database.read.users]
"""
GRANT = '[[grants]]\nnodes = ["*"]\nallow = ["database.read.users"]\n'


def doctor(folder: Path, settings: str) -> tuple[int, list[dict[str, Any]]]:
    (folder / "nodes").mkdir(exist_ok=True)
    (folder / "nodes" / "find_user_v1.vsp").write_text(NODE, encoding="utf-8")
    (folder / "vesper.toml").write_text(settings, encoding="utf-8")
    options = ["--nodes", str(folder / "nodes"), "--config", str(folder / "vesper.toml"), "--format", "json"]
    result = CliRunner().invoke(vesper, ["doctor", *options])
    assert result.exit_code in (0, 1), result.output
    return result.exit_code, json.loads(result.stdout)


def test_superuser_is_a_warning(tmp_path: Path, postgres: Postgres) -> None:
    code, found = doctor(tmp_path, f'[databases.main]\ndsn = "{postgres.new_database()}"\n{GRANT}')
    assert code == 0
    (one,) = found
    assert (one["level"], one["where"]) == ("warning", "databases.main")
    assert "`vesper` is a superuser" in one["text"]
    assert "#use-a-role-with-few-rights" in one["advice"]


@pytest.mark.parametrize(
    "right, part",
    [
        ("ALTER ROLE {role} BYPASSRLS", "BYPASSRLS"),
        ("ALTER ROLE {role} CREATEROLE", "CREATEROLE"),
        ("ALTER ROLE {role} REPLICATION", "REPLICATION"),
        ("GRANT pg_read_server_files TO {role}", "read files of the server"),
        ("GRANT pg_write_server_files TO {role}", "write files of the server"),
        ("GRANT pg_execute_server_program TO {role}", "run programs"),
        ("GRANT pg_read_all_data TO {role}", "read every table"),
        ("GRANT pg_write_all_data TO {role}", "write every table"),
    ],
)
def test_right_that_no_node_needs_is_a_warning(tmp_path: Path, postgres: Postgres, right: str, part: str) -> None:
    dsn = postgres.new_database()
    role = f"r{re.sub('[^a-z]', '', part.lower())}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        connection.execute(right.format(role=role).encode())
    code, found = doctor(tmp_path, f'[databases.main]\ndsn = "{dsn.replace("vesper@", f"{role}@")}"\n{GRANT}')
    assert code == 0
    assert [part in each["text"] for each in found] == [True]


def test_role_of_the_guide_is_without_a_finding(tmp_path: Path, postgres: Postgres) -> None:
    guide = (ROOT / "docs" / "how-to" / "configure-databases.md").read_text(encoding="utf-8")
    section = guide.split("## Use a role with few rights", 1)[1]
    found = re.search(r"```sql\n(.*?)```", section, re.DOTALL)
    assert found is not None
    dsn = postgres.new_database()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE users (id integer, name text)")
        connection.execute("CREATE TABLE orders (id integer, name text)")
        connection.execute("CREATE TABLE secrets (pw text)")
        connection.execute(found[1].replace("DATABASE shop", f"DATABASE {dsn.rpartition('/')[2]}").encode())
    own = dsn.replace("vesper@", "shop_nodes@")
    assert doctor(tmp_path, f'[databases.main]\ndsn = "{own}"\n{GRANT}') == (0, [])
    with psycopg.connect(own, autocommit=True) as connection:
        connection.execute("SELECT name FROM users")
        for sql in ("SELECT pw FROM secrets", "SELECT pg_read_file('/etc/hostname')", "CREATE TABLE x (a integer)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(sql.encode())
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP OWNED BY shop_nodes")
        connection.execute("DROP ROLE shop_nodes")


def test_database_out_of_reach_is_an_error(tmp_path: Path) -> None:
    settings = (
        f'[databases.main]\ndsn = "postgresql://x@127.0.0.1:{free_port()}/y"\n[databases.b]\ndsn = "sqlite:b.db"\n'
    )
    code, found = doctor(tmp_path, settings + GRANT)
    assert code == 1
    assert [(each["level"], each["where"]) for each in found] == [("error", "databases.main"), ("error", "databases.b")]
    assert "start the database" in found[0]["advice"]
    assert "`create = true` makes an empty file, without tables" in found[1]["advice"]


def test_grant_that_matches_nothing_is_an_error(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "a.db").close()
    settings = """\
[databases.main]
dsn = "sqlite:a.db"
[[grants]]
nodes = ["*"]
allow = ["database.read.users", "cache.read.nothing"]
deny = ["database.write", "exec.shell_command.*"]
[[grants]]
nodes = ["other_v1"]
allow = ["database.read.users"]
"""
    code, found = doctor(tmp_path, settings)
    assert code == 1
    assert [each["where"] for each in found] == ["grants[0].allow", "grants[1]"]
    assert "`cache.read.nothing` matches nothing" in found[0]["text"]


def test_a_node_with_errors_says_nothing_about_grants(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "a.db").close()
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "other_v1.vsp").write_text(NODE.replace("find_user", "other").replace("outputs:", "outputz:"))
    grant = '[[grants]]\nnodes = ["other"]\nallow = ["database.read.users"]\n'
    code, found = doctor(tmp_path, f'[databases.main]\ndsn = "sqlite:a.db"\n{GRANT}{grant}')
    assert code == 1
    assert [(each["where"], each["text"]) for each in found] == [("other_v1", "the node has errors")]
    assert "grants are checked when it has none" in found[0]["advice"]


EVENTS = """\
node_id: tell_v1
type: event_handler
intent: Tell others
inputs: {event_id: string}
outputs: {success: {sent: boolean}}
flow:
  - {step: message, operation: event_publish, topic: orders, payload: {id: event_id}, effect: txn}
  - {operation: return, success: {sent: 'true'}}
security: {capabilities_required: [events.publish.orders]}
"""


@pytest.mark.parametrize(
    "settings, where, text",
    [
        ("", "tell_v1", "there is no [topics.orders]"),
        ('[topics.orders]\nurl = "memory:"\n', "topics.orders", "the topic has no outbox"),
        ('[events]\nurl = "memory:"\n', "topics.orders", "the topic has no outbox"),
        ('[topics.orders]\nurl = "memory:"\ndatabase = "main"\n', "databases.main", "no such table: vesper_outbox"),
        ('[topics.orders]\nurl = "outbox:"\ndatabase = "main"\n', "databases.main", "no such table: vesper_outbox"),
    ],
)
def test_events_that_cannot_be_published_are_errors(tmp_path: Path, settings: str, where: str, text: str) -> None:
    sqlite3.connect(tmp_path / "a.db").close()
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "tell_v1.vsp").write_text(EVENTS, encoding="utf-8")
    both = GRANT.replace('"database.read.users"', '"database.read.users", "events.publish.orders"')
    code, found = doctor(tmp_path, f'{settings}[databases.main]\ndsn = "sqlite:a.db"\n{both}')
    assert [(each["level"], each["where"]) for each in found] == [("error", where)], found
    assert (code, text in found[0]["text"], bool(found[0]["advice"])) == (1, True, True)
    # A node that is not granted is for another configuration.
    assert doctor(tmp_path, f'[databases.main]\ndsn = "sqlite:a.db"\n{GRANT}') == (0, [])


@pytest.mark.parametrize("host", ["127.0.0.1:3000", "localhost", "10.1.2.3", "[::1]:80"])
def test_a_private_address_without_its_setting_is_an_error(tmp_path: Path, host: str) -> None:
    sqlite3.connect(tmp_path / "a.db").close()
    settings = f'{GRANT}[databases.main]\ndsn = "sqlite:a.db"\n[providers.shop]\nallow_http = true\nbase_url = "http://{host}"\n'
    code, found = doctor(tmp_path, settings)
    assert (code, [each["where"] for each in found]) == (1, ["providers.shop"])
    assert "allow_private_addresses = true" in found[0]["advice"]
    assert doctor(tmp_path, f"{settings}allow_private_addresses = true\n") == (0, [])


def test_without_a_configuration_the_installation_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(vesper, ["doctor"])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert "ok: engines: python, interp, jit agree on a small node" in lines
    assert [line.split(":")[1].strip() for line in lines[:5]] == ["engine", "engines", "version", "cache", "clock"]
    assert lines[-1] == "checked the installation: no findings"


def problems() -> dict[str, Finding]:
    return {each.where: each for each in check_installation() if each.level != "ok"}


def test_every_fault_of_an_installation_has_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("VESPER_CACHE", str(shared))
    monkeypatch.setattr(installation, "version", lambda _name: "0.0.1")
    monkeypatch.setattr("vesper.cli.doctor.installation.time.time", lambda: 0.0)
    monkeypatch.setattr(
        installation, "requires", lambda _name: ["click>=8", "nothing>=1", "psycopg; extra == 'postgres'"]
    )
    found = problems()
    assert {where: each.level for where, each in found.items()} == {
        "version": "error", "cache": "warning", "clock": "warning",
    }  # fmt: skip
    assert all(each.advice for each in found.values())
    assert "chmod go-w" in found["cache"].advice


def test_packages_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [
        "click>=8",
        "no-such-package>=1",
        "none-here[pool]>=3; extra == 'postgres'",
        "vesper[http]; extra == 'all'",
    ]
    monkeypatch.setattr(installation, "requires", lambda _name: listed)
    found = problems()
    assert list(found) == ["packages"]
    assert found["packages"].advice == "pip install 'no-such-package>=1'"
    (extra,) = (each for each in check_installation() if each.where == "[postgres]")
    assert (extra.level, extra.text) == ("ok", "not installed: none-here")
    # Never `vesper[postgres]`: the public index has an unrelated `vesper`.
    assert extra.advice == "pip install 'none-here[pool]>=3', if you need it"


def test_an_extension_that_does_not_load_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_name: str) -> None:
        raise ImportError("wrong ELF class")

    monkeypatch.setattr("vesper.engines.registry.engine_named", fail)
    found = problems()["engine"]
    assert (found.level, found.text) == ("error", "the extension vesper._direct does not load: wrong ELF class")
    assert "install a wheel for CPython" in found.advice


def test_a_bug_report_names_settings_without_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_KEY", "hunter2")
    result = CliRunner().invoke(vesper, ["--version", "-v"])
    assert result.exit_code == 0
    assert result.output.startswith("vesper, version ")
    names = [line.split("  ")[0] for line in result.output.splitlines()[1:]]
    assert {"python", "platform", "processor", "engine", "packages", "cache", "terminal", "environment"} <= set(names)
    assert "VESPER_KEY" in result.output
    assert "hunter2" not in result.output
