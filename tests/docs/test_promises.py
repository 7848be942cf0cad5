"""Sentences of the documentation that promise a behaviour, each with a function that shows it.

Examples of pages run elsewhere (`test_python_sessions.py`, `tests/unit/cli/test_sessions.py`). Here are sentences
without an example. A sentence that changes must be shown again: its text stands in the table.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

import vesper
from tests.support.console import ROOT
from tests.support.prepared import completed
from tests.support.prepared import vesper as run
from vesper.cli.main import COMMANDS
from vesper.cli.main import vesper as group
from vesper.migration.control.modes import Mode
from vesper.values.generated.operations import OPERATIONS

NODE = """node_id: NAME_v1
type: function
intent: Return a number
inputs: {n: integer}
outputs: {success: {m: integer}}
flow:
  - {operation: return, success: {m: n}}
"""
NOTE = """node_id: note_v1
type: event_handler
intent: Note an order
inputs: {event_id: string}
outputs: {success: {rows: integer}}
flow:
  - {step: rows, operation: database_write, table: notes, data: {id: event_id}}
  - {operation: return, success: [rows]}
security: {capabilities_required: [database.write.notes]}
"""
SETTINGS = """[[grants]]
nodes = ["note"]
allow = ["database.write.notes"]
[databases.main]
dsn = "sqlite:notes.db"
"""


def write(folder: Path, name: str, text: str = NODE) -> None:
    """Write a node into the folder `nodes`."""
    (folder / "nodes").mkdir(exist_ok=True)
    (folder / "nodes" / f"{name}_v1.vsp").write_text(text.replace("NAME", name), encoding="utf-8")


def checked(folder: Path, name: str, text: str) -> str:
    """Return the findings of `vesper check` on a node, one a line."""
    write(folder, name, text)
    return run(["check", name, "--format", "concise"], folder)[0]


def page_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def the_language_has_its_types_and_operations(folder: Path) -> None:
    types = re.findall(r"^\| `.*\| implemented \|$", page_of("docs/reference/types.md"), re.MULTILINE)
    assert len(types) == 18
    assert len(OPERATIONS) > 300


def there_are_five_modes(folder: Path) -> None:
    assert len(Mode) == 5


def later_fields_are_refused_by_name(folder: Path) -> None:
    added = {"observability": NODE + "observability: {traces: true}\n"}
    assert set(re.findall(r"^\| \*(\w+)\* \|", page_of("docs/reference/fields.md"), re.MULTILINE)) == set(added)
    for name, text in added.items():
        assert f"error[VSP0009] `{name}`" in checked(folder, "late", text)


def metadata_is_checked(folder: Path) -> None:
    caller = NODE.replace("  - {op", "  - {step: c, operation: call_node, node: one_v1, inputs: [n]}\n  - {op")
    caller = caller.replace("m: n}", "m: c.m}")
    write(folder, "one")
    listed = caller.replace("inputs:", "metadata: {created: 2026-11-15, tags: [a], dependencies: [LIST]}\ninputs:", 1)
    assert "0 with errors" in checked(folder, "two", listed.replace("LIST", "one_v1"))
    assert "is not a date" in checked(folder, "two", listed.replace("2026-11-15", "today").replace("LIST", "one_v1"))
    assert "VSP1306" in checked(folder, "two", listed.replace("LIST", ""))
    for twice in ("one_v1, one_v1", "one_v1, one"):
        assert "error[VSP1306] `dependencies` lists `one` twice" in checked(
            folder, "two", listed.replace("LIST", twice)
        )


PAIR = """node_id: pair_v1
type: function
intent: Return pairs
types:
  Pair: {fields: {low: integer, high: integer}, constraints: [low <= high]}
  Even: {type: integer, constraints: ["mod(value, 2) == 0"]}
inputs: {pairs: "array<Pair>", step: integer, out: integer}
outputs: {success: {even: Even}}
flow:
  - {step: made, operation: compute, type: Pair, value: {low: "0", high: step}}
  - {operation: return, success: {even: out + made.low}}
"""


def constraints_hold_wherever_a_type_is_written(folder: Path) -> None:
    write(folder, "pair", PAIR)
    for engine in ("python", "interp"):
        pair = vesper.load("pair", engine=engine, nodes=folder / "nodes")
        assert pair(pairs=[{"low": 1, "high": 2}], step=1, out=2).ok
        broken = [
            pair(pairs=[{"low": 1, "high": 2}, {"low": 2, "high": 1}], step=1, out=2),
            pair(pairs=[], step=-1, out=2),
            pair(pairs=[], step=1, out=1),
        ]
        assert [each.error and each.error.code for each in broken] == ["constraint", "validation", "postcondition"]


def every_command_is_listed(folder: Path) -> None:
    listed = re.findall(r"^\| `([a-z]+)` \|", page_of("docs/how-to/README.md"), re.MULTILINE)
    assert listed == sorted(COMMANDS)


def devices_are_refused(folder: Path) -> None:
    write(folder, "one")
    os.mkfifo(folder / "pipe")
    for path in ("pipe", "nodes", "/dev/zero"):
        printed, code = run(["run", "one", "--json", path], folder)
        assert code == 2, printed
        assert "a regular file is needed" in printed


def every_variable_is_listed(folder: Path) -> None:
    sources = [*(ROOT / "vesper").rglob("*.py"), *(ROOT / "direct_runtime" / "crates").glob("*/src/**/*.rs")]
    read = set()
    for path in sources:
        read |= set(re.findall(r'"(VESPER_[A-Z_]+)"', path.read_text(encoding="utf-8")))
    assert {"VESPER_CONFIG", "VESPER_JIT", "VESPER_DICTS"} <= read
    listed = page_of("docs/reference/settings.md").split("## Environment")[1]
    missing = {name for name in read if f"`{name}" not in listed}
    assert missing - {"VESPER_SECRET_"} == set()


def wrong_variables_are_refused(folder: Path) -> None:
    write(folder, "one")
    for name in ("VESPER_DECIMALS", "VESPER_DICTS", "VESPER_JIT"):
        command = f"import vesper; vesper.load('one', engine='jit', nodes={str(folder / 'nodes')!r})"
        environment = {**os.environ, name: "x", "VESPER_NO_CACHE": "1"}
        done = subprocess_of(command, environment)
        assert name in done, done


def subprocess_of(program: str, environment: dict[str, str] | None = None) -> str:
    """Return what a new Python prints."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False, timeout=60
    )
    return done.stdout + done.stderr


def a_joined_connection_decides_itself(folder: Path) -> None:
    write(folder, "note", NOTE)
    (folder / "vesper.toml").write_text(SETTINGS, encoding="utf-8")
    path = folder / "notes.db"
    first = sqlite3.connect(path)
    first.execute("CREATE TABLE notes (id TEXT)")
    first.close()
    with vesper.Host.from_file(folder / "vesper.toml") as host:
        note = vesper.load("note", nodes=folder / "nodes", host=host)
        connection = sqlite3.connect(path)
        with vesper.joined("main", connection):
            assert note(event_id="e1").ok
        connection.rollback()
        assert connection.execute("SELECT * FROM notes").fetchall() == []
        with vesper.joined("main", connection):
            assert note(event_id="e2").ok
        connection.commit()
        assert connection.execute("SELECT * FROM notes").fetchall() == [("e2",)]
        connection.close()
        automatic = sqlite3.connect(path, isolation_level=None)
        with vesper.joined("main", automatic), pytest.raises(TypeError, match="no open transaction"):
            note(event_id="e3")
        automatic.execute("BEGIN")
        with vesper.joined("mian", automatic), pytest.raises(TypeError, match="did you mean `main`"):
            note(event_id="e4")
        automatic.close()


def the_doctor_compares_grants_and_connects(folder: Path) -> None:
    write(folder, "note", NOTE)
    found = []
    for text in (SETTINGS, f"{SETTINGS}create = true\n", f"{SETTINGS}create = true\n".replace('notes"', 'other"')):
        (folder / "vesper.toml").write_text(text, encoding="utf-8")
        printed, code = run(["doctor"], folder)
        found.append((code, "there is no file" in printed, "matches nothing that" in printed))
    assert found == [(1, True, False), (0, False, False), (1, False, True)]


def a_missing_part_is_reported_first(folder: Path) -> None:
    calls = "  - {step: asked, operation: external_api_call, provider: bank, method: GET, endpoint: /x,"
    calls += " headers: {K: '{k}'}}\n"
    steps = f"  - {{step: k, operation: secret, name: api_key}}\n{calls}  - {{operation: return"
    text = NOTE.replace("  - {operation: return", steps).replace(
        "[database.write.notes]", "[database.write.notes, network.http_client.bank, secrets.read.api_key]"
    )
    write(folder, "note", text)
    connection = sqlite3.connect(folder / "notes.db")
    connection.execute("CREATE TABLE notes (id TEXT)")
    settings = [
        (SETTINGS, "denied"),
        (SETTINGS.replace('"database.write.notes"', '"*"'), "[providers.bank]"),
        (
            SETTINGS.replace('"database.write.notes"', '"*"')
            + '[providers.bank]\nbase_url = "https://127.0.0.1:1"\nallow_private_addresses = true\n',
            "VESPER_SECRET_API_KEY",
        ),
    ]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("VESPER_")}
    for text, expected in settings:
        (folder / "vesper.toml").write_text(text, encoding="utf-8")
        done = completed(["run", "note", "-i", "event_id=e1"], folder, environment)
        assert done.returncode == 1
        assert expected in done.stdout + done.stderr
    assert connection.execute("SELECT * FROM notes").fetchall() == []
    connection.close()


def a_body_has_a_limit(folder: Path) -> None:
    write(folder, "note", NOTE.replace("{id: event_id}", "{id: \"repeat('x', 17000)\"}"))
    sqlite3.connect(folder / "notes.db").execute("CREATE TABLE notes (id TEXT)").connection.close()
    codes = []
    for size in ("15 KiB", "16 KiB", "64 MiB", "65 MiB"):
        (folder / "vesper.toml").write_text(f'{SETTINGS}[journal]\nmax_body = "{size}"\n', encoding="utf-8")
        printed, _ = run(["run", "note", "-i", "event_id=e"], folder)
        codes.append(next(each for each in ("16 KiB at least", "error: unavailable", "execution") if each in printed))
    assert codes == ["16 KiB at least", "error: unavailable", "execution", "16 KiB at least"]


CLOCK = """node_id: clock_v1
type: event_handler
intent: Read the clock
inputs: {event_id: string}
outputs: {success: {at: timestamp}}
flow:
  - {step: at, operation: clock}
  - {operation: return, success: [at]}
security: {capabilities_required: [clock.read.system]}
"""


def a_session_that_ends_early_is_cancelled(folder: Path) -> None:
    write(folder, "clock", CLOCK)
    (folder / "vesper.toml").write_text('[[grants]]\nnodes = ["clock"]\nallow = ["clock.*"]\n', encoding="utf-8")
    ends = []
    for command in ("quit", "continue"):
        printed, _ = run(["debug", "clock", "--live", "-i", "event_id=e", "-x", command], folder)
        ends.append(printed.splitlines()[-1].partition(": ")[2])
    assert ends == ["limit hit: cancelled", "returned"]
    assert "limit hit" in run(["journal", "list"], folder)[0]


def a_batch_has_its_exit_codes(folder: Path) -> None:
    write(folder, "one")
    codes = []
    for rows in ("n\n1\n", "n\n1\nx\n", "n,other\n1,2\n"):
        (folder / "in.csv").write_text(rows, encoding="utf-8")
        codes.append(run(["run", "one", "--batch", "in.csv", "-o", "out.csv"], folder)[1])
    assert [*codes, run(["run", "one", "--batch", "in.csv"], folder)[1]] == [0, 1, 1, 2]


def generated_python_needs_no_engine(folder: Path) -> None:
    write(folder, "one")
    assert run(["compile", "one", "-o", "one.py"], folder)[1] == 0
    (folder / "nodes" / "one_v1.vsp").unlink()
    program = f"import sys; sys.path.insert(0, {str(folder)!r}); from one import call; print(call({{'n': 1}}))"
    loaded = "print([name for name in sys.modules if name.startswith(('vesper._direct', 'vesper.language'))])"
    assert subprocess_of(f"{program}; {loaded}") == "{'m': 1}\n[]\n"


def a_loaded_node_does_not_change(folder: Path) -> None:
    write(folder, "one")
    one = vesper.load("one", nodes=folder / "nodes")
    write(folder, "one", NODE.replace("m: n}", "m: n + 1}"))
    assert (one(n=1).m, vesper.load("one", nodes=folder / "nodes")(n=1).m) == (1, 2)


def odd_characters_stay(folder: Path) -> None:
    path = folder / "nodes" / "one_v1.vsp"
    for odd in "\x85\u2028\u2029":
        write(folder, "one", f"node_id:    one_v1\nintent: a{odd}b\n")
        assert run(["fmt", "nodes"], folder)[1] == 0
        assert path.read_bytes().decode() == f"node_id: one_v1\nintent: a{odd}b\n"
    write(folder, "one", "node_id:    one_v1\nintent: a\ufeffb\n")
    printed, code = run(["fmt", "nodes"], folder)
    assert (code, "VSP0003" in printed) == (1, True)
    assert path.read_bytes().decode() == "node_id:    one_v1\nintent: a\ufeffb\n"


def every_capability_can_be_denied(folder: Path) -> None:
    names = re.findall(r"^\| `([a-z._]+)` \|", page_of("docs/reference/capabilities.md"), re.MULTILINE)
    assert "network.http_server" in names
    text = NODE + f"security: {{denied_capabilities: [{', '.join(names)}]}}\n"
    assert "0 with errors" in checked(folder, "one", text)


def functions_of_sql_need_their_capability(folder: Path) -> None:
    query = "{step: rows, operation: database_query, query: 'SELECT my_score(id) AS s FROM notes',"
    query += " returns: 'array<integer>'}"
    text = NOTE.replace("{step: rows, operation: database_write, table: notes, data: {id: event_id}}", query)
    text = text.replace("[rows]", "{rows: length(rows)}").replace("database.write.notes", "database.read.notes")
    assert "VSP2011" in checked(folder, "note", text)
    granted = text.replace("database.read.notes", "database.read.notes, database.function.my_score")
    assert "0 with errors" in checked(folder, "note", granted)


PROMISES: list[tuple[str, str, Callable[[Path], None]]] = [
    ("README.md", "eighteen types, over 300 operations", the_language_has_its_types_and_operations),
    ("README.md", "migration in five modes", there_are_five_modes),
    ("docs/reference/fields.md", "are refused by name in this version", later_fields_are_refused_by_name),
    ("docs/reference/fields.md", "`created` and `dependencies` are checked", metadata_is_checked),
    (
        "docs/reference/fields.md",
        "checked wherever the node writes the type",
        constraints_hold_wherever_a_type_is_written,
    ),
    ("docs/reference/capabilities.md", "it can be denied", every_capability_can_be_denied),
    (
        "docs/reference/capabilities.md",
        "not on the list of pure ones. | `database_query`, `database_write`, `database_update`",
        functions_of_sql_need_their_capability,
    ),
    ("docs/reference/settings.md", "## Environment", every_variable_is_listed),
    ("docs/reference/settings.md", "from `16 KiB` to `64 MiB`", a_body_has_a_limit),
    ("docs/how-to/debug-a-node.md", "ends the run as *limit hit*, `cancelled`", a_session_that_ends_early_is_cancelled),
    (
        "docs/how-to/use-the-direct-engine.md",
        "Another value of either variable is refused",
        wrong_variables_are_refused,
    ),
    ("docs/how-to/README.md", "| command | what it does | guide |", every_command_is_listed),
    ("docs/how-to/README.md", "refuses devices, FIFOs and folders", devices_are_refused),
    (
        "docs/how-to/configure-databases.md",
        "raises `TypeError` at the first effect",
        a_joined_connection_decides_itself,
    ),
    ("docs/how-to/run-with-effects.md", "is reported before anything is performed", a_missing_part_is_reported_first),
    (
        "docs/how-to/run-with-effects.md",
        "compares the grants with all nodes and connects to every database",
        the_doctor_compares_grants_and_connects,
    ),
    ("docs/how-to/run-batches.md", "1 a row has none, or the columns do not fit", a_batch_has_its_exit_codes),
    ("docs/how-to/call-generated-python.md", "no engine, no `.vsp` file", generated_python_needs_no_engine),
    ("docs/how-to/use-from-python.md", "A loaded node does not change", a_loaded_node_does_not_change),
    (
        "docs/how-to/format-nodes.md",
        "end no line and stay. A file with U+FEFF is an error and is left alone",
        odd_characters_stay,
    ),
]


@pytest.mark.parametrize("page, sentence, show", PROMISES, ids=[each[2].__name__ for each in PROMISES])
def test_promise(page: str, sentence: str, show: Callable[[Path], None], tmp_path: Path) -> None:
    assert sentence in page_of(page)
    show(tmp_path)


def commands_of(text: str) -> Iterator[tuple[click.Command, str]]:
    """The commands that a text names (`vesper journal list --since 2h`), each with the words that follow it."""
    context = click.Context(group)
    for found in re.finditer(r"vesper ([a-z]+)((?: [^`|\n]*)?)", text):
        command, rest = group.get_command(context, found[1]) if found[1] in COMMANDS else None, found[2].split("  ")[0]
        words = iter(rest.split())
        while isinstance(command, click.Group):
            command = command.commands.get(next(words, ""))
        if command is not None:
            yield command, rest


def test_every_option_of_a_page_exists() -> None:
    missing, count = [], 0
    for path in [ROOT / "README.md", *(ROOT / "docs" / "how-to").rglob("*.md"), *(ROOT / "docs/spec").glob("*.md")]:
        for command, rest in commands_of(path.read_text(encoding="utf-8")):
            there = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
            options = re.findall(r"(?<![\w-])--[a-z][a-z-]+", rest)
            count += len(options)
            missing += [f"{path.name}: {command.name} {each}" for each in options if each not in there]
    assert missing == []
    assert count > 100


def test_every_target_and_extra_of_a_page_exists() -> None:
    targets = set(" ".join(re.findall(r"^([a-z0-9 -]+):", page_of("Makefile"), re.MULTILINE)).split())
    project = tomllib.loads(page_of("pyproject.toml"))["project"]
    missing, count = [], 0
    for path in [ROOT / "README.md", *(ROOT / "docs" / "how-to").rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        made = set(re.findall(r"(?:`|^\$ |^)make ([a-z0-9-]+)", text, re.MULTILINE))
        extras = {name for names in re.findall(r"vesper\[([a-z,]+)\]", text) for name in names.split(",")}
        count += len(made) + len(extras)
        missing += [
            f"{path.name}: {name}" for name in (made - targets) | (extras - {*project["optional-dependencies"]})
        ]
    assert missing == []
    assert count > 20
