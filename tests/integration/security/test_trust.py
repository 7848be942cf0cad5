"""Trust in files and folders: real owners and modes, judged by a process of a real user.

The rows are layouts: a script of `user:mode path` lines, and the user that runs Vesper. As root, every row runs in a
child that drops its rights. Without root, rows with one owner run as the current user.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Literal

import pytest

from vesper.storage.trust import distrust

ROOT = Path(__file__).parents[3]
ALICE, MALLORY, TEAM = 51_234, 51_235, 51_300
"""Users and a group that no database names, as in a container."""
USERS = {"root": 0, "alice": ALICE, "mallory": MALLORY}
NODE = """\
node_id: fee_v1
type: function
intent: Charge a fee
inputs: {amount: decimal}
outputs: {success: {fee: decimal}}
flow:
  - operation: return
    success: {fee: amount}
"""
SETTINGS = '[effects]\nmodules = ["planted"]\n'
PLANTED = "open('ran', 'w').close()\n"

# One process for each row: it imports everything as root, in whose home the interpreter may be, then drops its rights.
PROBE = """
import os, sys, json
from pathlib import Path
import vesper
from vesper.config.locate import config_for
from vesper.journal.journal import open_journal
from vesper.migration.stores.sqlite_store import SqliteMigrationStore
from vesper.migration.router.routes import Routes
from vesper.config.settings import default_config
from vesper.config.traces import TraceSettings
from vesper.trace.store import TraceStore
from click.testing import CliRunner
from vesper.cli.main import vesper as cli
import vesper.cli.check.command, vesper.cli.load_node, vesper.compiler.node_cache
import grp, pwd, shlex

def probe(kind, path):
    path = Path(path)
    if kind == "settings":
        config_for(explicit=path)
    elif kind == "found":
        os.chdir(path)
        config_for()
    elif kind == "node":
        vesper.load(path)
    elif kind == "journal":
        open_journal(f"sqlite:{path}").find()
    elif kind == "store":
        SqliteMigrationStore(str(path)).versions()
    elif kind == "routes":
        Routes(default_config(path)).close()
    elif kind == "traces":
        with TraceStore(TraceSettings(path))._open_for_writing():
            pass
    elif kind == "cache":
        done = CliRunner().invoke(cli, ["check", "--nodes", str(path)])
        if done.exit_code or "without a cache" in done.output:
            raise RuntimeError(done.output)

kind, path, uid, gid, warm = sys.argv[1:]
probe(kind, warm)
os.chdir("/")
if int(uid) != os.geteuid():
    os.setgroups([])
    os.setgid(int(gid))
    os.setuid(int(uid))
os.environ["HOME"] = os.environ["PROBE_HOME"]
try:
    probe(kind, path)
    print(json.dumps([None, ""]))
except Exception as error:
    print(json.dumps([type(error).__name__, str(error)]))
"""


@dataclass(frozen=True)
class Situation:
    name: str
    layout: str
    path: str
    is_trusted: bool
    kind: Literal["settings", "found", "node", "journal", "store", "routes", "traces", "cache"] = "settings"
    user: str = "alice"
    says: str = ""
    trust: str = ""
    """Value of VESPER_TRUST, relative to the folder of the layout."""


SITUATIONS = [
    # whose the file is
    Situation("own file in own folder", "alice:755 p/\nalice:644 p/vesper.toml", "p/vesper.toml", True),
    Situation("file and folder of root", "root:755 p/\nroot:644 p/vesper.toml", "p/vesper.toml", True),
    Situation(
        "file of another user in own folder",
        "alice:755 p/\nmallory:644 p/vesper.toml",
        "p/vesper.toml",
        False,
        says=f"belongs to uid {MALLORY}, and this process runs as uid {ALICE}",
    ),
    Situation(
        "own file in a folder of another user", "mallory:755 p/\nalice:644 p/vesper.toml", "p/vesper.toml", False
    ),
    Situation(
        "own folder below one of another user",
        "mallory:755 m/\nalice:755 m/p/\nalice:644 m/p/vesper.toml",
        "m/p/vesper.toml",
        False,
    ),
    Situation(
        "root over a bind mount of another user",
        "alice:755 p/\nalice:644 p/vesper.toml",
        "p/vesper.toml",
        False,
        user="root",
        says="run: vesper trust {root}/p\n",
    ),
    Situation(
        "file that only root can write, read by root",
        "root:700 p/\nroot:600 p/vesper.toml",
        "p/vesper.toml",
        True,
        user="root",
    ),
    # what others can write
    Situation(
        "file that everyone can write",
        "alice:755 p/\nalice:666 p/vesper.toml",
        "p/vesper.toml",
        False,
        says="run `chmod o-w {root}/p/vesper.toml`",
    ),
    Situation("folder that everyone can write", "alice:777 p/\nalice:644 p/vesper.toml", "p/vesper.toml", False),
    Situation("file in a sticky folder such as /tmp", "root:1777 t/\nalice:644 t/vesper.toml", "t/vesper.toml", False),
    Situation(
        "own folder in a sticky folder",
        "root:1777 t/\nalice:755 t/p/\nalice:644 t/p/vesper.toml",
        "t/p/vesper.toml",
        True,
    ),
    Situation(
        "own folder in one that everyone can write",
        "root:777 t/\nalice:755 t/p/\nalice:644 t/p/vesper.toml",
        "t/p/vesper.toml",
        False,
    ),
    Situation("file of root that everyone can write", "root:755 p/\nroot:646 p/vesper.toml", "p/vesper.toml", False),
    # groups
    Situation("umask 002 with a private group", "alice:775 p/\nalice:664 p/vesper.toml", "p/vesper.toml", True),
    Situation(
        "file that a shared group can write",
        "alice:755 p/\nalice+team:664 p/vesper.toml",
        "p/vesper.toml",
        False,
        says=f"the group gid {TEAM} can write",
    ),
    Situation(
        "folder that a shared group can write", "alice+team:2775 p/\nalice:644 p/vesper.toml", "p/vesper.toml", False
    ),
    Situation(
        "folder of root above that a group can write, as /usr/local",
        "root+team:2775 l/\nalice:755 l/p/\nalice:644 l/p/vesper.toml",
        "l/p/vesper.toml",
        True,
    ),
    # links
    Situation(
        "own link to own file",
        "alice:755 p/\nalice:644 p/real.toml\nalice:link p/vesper.toml real.toml",
        "p/vesper.toml",
        True,
    ),
    Situation(
        "link of another user to own file",
        "alice:755 p/\nalice:644 p/vesper.toml\nroot:1777 t/\nmallory:link t/vesper.toml ../p/vesper.toml",
        "t/vesper.toml",
        False,
        says="name the file itself instead of the link: {root}/p/vesper.toml",
    ),
    Situation(
        "own link to a file of another user",
        "alice:755 p/\nmallory:755 m/\nmallory:644 m/vesper.toml\nalice:link p/vesper.toml ../m/vesper.toml",
        "p/vesper.toml",
        False,
    ),
    # found from below
    Situation(
        "file of another user above the working folder",
        "mallory:755 m/\nmallory:644 m/vesper.toml\nalice:755 m/work/",
        "m/work",
        False,
        "found",
    ),
    Situation(
        "own file above the working folder",
        "alice:755 p/\nalice:644 p/vesper.toml\nalice:755 p/w/",
        "p/w",
        True,
        "found",
    ),
    # trust
    Situation(
        "trusted by the environment", "mallory:755 m/\nmallory:644 m/vesper.toml", "m/vesper.toml", True, trust="m"
    ),
    Situation("everything trusted", "mallory:777 m/\nmallory:666 m/vesper.toml", "m/vesper.toml", True, trust="*"),
    Situation(
        "another folder trusted", "mallory:755 m/\nmallory:644 m/vesper.toml", "m/vesper.toml", False, trust="mm"
    ),
    # nodes, journals, stores, traces, caches
    Situation("own node", "alice:755 n/\nalice:644 n/fee_v1.vsp", "n/fee_v1.vsp", True, "node"),
    Situation("node of another user", "alice:755 n/\nmallory:644 n/fee_v1.vsp", "n/fee_v1.vsp", False, "node"),
    Situation(
        "folder of nodes that everyone can write", "alice:777 n/\nalice:644 n/fee_v1.vsp", "n/fee_v1.vsp", False, "node"
    ),
    Situation("own journal", "alice:755 p/\nalice:700 p/.vesper/", "p/.vesper/journal.db", True, "journal"),
    Situation(
        "journal of another user",
        "alice:755 p/\nalice:755 p/.vesper/\nmallory:666 p/.vesper/journal.db",
        "p/.vesper/journal.db",
        False,
        "journal",
    ),
    Situation(
        "new journal in a folder that everyone can write", "alice:777 p/", "p/.vesper/journal.db", False, "journal"
    ),
    Situation("own store", "alice:755 p/\nalice:700 p/.vesper/", "p/.vesper/migration.db", True, "store"),
    Situation(
        "store in a state folder of another user",
        "alice:755 p/\nmallory:777 p/.vesper/",
        "p/.vesper/migration.db",
        False,
        "store",
    ),
    Situation("spool in a state folder of another user", "alice:755 p/\nmallory:777 p/.vesper/", "p", False, "routes"),
    Situation(
        "traces in a state folder that everyone can write",
        "alice:755 p/\nalice:777 p/.vesper/",
        "p/.vesper/traces.db",
        False,
        "traces",
    ),
    Situation("own cache", "alice:755 p/\nalice:755 p/nodes/\nalice:644 p/nodes/fee_v1.vsp", "p/nodes", True, "cache"),
    Situation(
        "cache of another user",
        "alice:755 p/\nalice:755 p/nodes/\nalice:644 p/nodes/fee_v1.vsp\nmallory:755 p/.vesper/",
        "p/nodes",
        False,
        "cache",
    ),
]
IS_ROOT = os.geteuid() == 0


def is_possible(situation: Situation) -> bool:
    """Return whether the layout can be made: without root it has one owner, who also runs Vesper."""
    owners = {line.split(":")[0] for line in situation.layout.splitlines()}
    return IS_ROOT or owners == {situation.user}


POSSIBLE = [each for each in SITUATIONS if is_possible(each)]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can enter, below the sticky /tmp."""
    folder = Path(tempfile.mkdtemp(prefix="vesper-trust-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder.resolve()
    rmtree(folder)


def make(folder: Path, layout: str) -> None:
    """Make files, folders and links with their owners and modes; the modes last, as they may shut the folder."""
    for line in layout.splitlines():
        who, path, *target = line.split(" ")[0].split(":")[0], *line.split(" ")[1:]
        mode = line.split(" ")[0].split(":")[1]
        made = folder / path
        if target:
            made.symlink_to(target[0])
        elif path.endswith("/"):
            made.mkdir()
        else:
            made.write_text(NODE if path.endswith(".vsp") else "" if path.endswith(".db") else SETTINGS)
        user, _, group = who.partition("+")
        if IS_ROOT:
            os.lchown(made, USERS[user], TEAM if group else USERS[user])
        if not target:
            made.chmod(int(mode, 8))


def warm_path(folder: Path, kind: str) -> Path:
    """Return what the probe uses before it drops its rights, of the same kind and root's own."""
    warm = folder / "warm"
    (warm / "nodes").mkdir(parents=True)
    (warm / "nodes" / "fee_v1.vsp").write_text(NODE)
    (warm / "vesper.toml").write_text("")
    named = {"settings": "vesper.toml", "found": ".", "routes": ".", "node": "nodes/fee_v1.vsp", "cache": "nodes"}
    return warm / named.get(kind, f"{kind}.db")


def run_probe(situation: Situation, place: Path) -> tuple[str | None, str]:
    """Return the exception of the real entry point and its message; None where it used the file."""
    user = USERS[situation.user] if IS_ROOT else os.geteuid()
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        Path(home).chmod(0o755)
        warm = warm_path(Path(home), situation.kind)
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("VESPER_", "XDG_"))}
        environment |= {"VESPER_CACHE": "off", "PROBE_HOME": home, "HOME": home, "PYTHONPATH": str(ROOT)}
        if situation.trust:
            trusted = situation.trust if situation.trust == "*" else str(place / situation.trust)
            environment["VESPER_TRUST"] = f"{home}:{trusted}"
        done = subprocess.run(
            [sys.executable, "-c", PROBE, situation.kind, place / situation.path, str(user), str(user), warm],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    error, message = json.loads(done.stdout.splitlines()[-1])
    return error, message


def test_there_are_twenty_situations() -> None:
    assert len(SITUATIONS) >= 20
    assert len({each.name for each in SITUATIONS}) == len(SITUATIONS)
    assert POSSIBLE == SITUATIONS or not IS_ROOT
    assert IS_ROOT or not os.environ.get("CI"), "CI runs these tests as root: other users are needed"


@pytest.mark.parametrize("situation", POSSIBLE, ids=lambda each: each.name.replace(" ", "-"))
def test_a_situation(situation: Situation, place: Path) -> None:
    make(place, situation.layout)
    error, message = run_probe(situation, place)
    if situation.is_trusted:
        assert error is None, message
        return
    assert error in ("ConfigError", "NodeError", "JournalError", "StoreError", "TraceError", "RuntimeError"), message
    assert "is not trusted: " in message
    assert situation.says.replace("{root}", str(place)) in message
    assert "vesper trust " in message or "instead of the link" in message


def test_a_file_of_another_user_for_any_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs without root too: the process believes to be another user."""
    (tmp_path / "vesper.toml").write_text("")
    os.chown(tmp_path / "vesper.toml", os.geteuid() or MALLORY, -1)
    monkeypatch.setattr(os, "geteuid", lambda: ALICE)
    assert "belongs to " in str(distrust(tmp_path / "vesper.toml"))


# -- the command ----------------------------------------------------------------------------------


def run_vesper(home: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("VESPER_", "XDG_"))}
    return subprocess.run(
        [Path(sys.executable).parent / "vesper", *arguments],
        cwd=folder,
        env=environment | {"HOME": str(home), "VESPER_CACHE": "off"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def shared(place: Path) -> Path:
    """A project that every user can write, with settings that import a module of its folder."""
    project = place / "project"
    (project / "nodes").mkdir(parents=True)
    (project / "nodes" / "fee_v1.vsp").write_text(NODE + "security: {audit_level: detailed}\n")
    (project / "vesper.toml").write_text(SETTINGS)
    (project / "planted.py").write_text(PLANTED)
    project.chmod(0o777)
    if IS_ROOT:
        for each in (project, *project.rglob("*")):
            os.chown(each, MALLORY, MALLORY)
    return project


def test_planted_code_runs_only_once_its_folder_is_trusted(shared: Path, tmp_path: Path) -> None:
    command = ("run", "fee", "-i", "amount=1")
    refused = run_vesper(tmp_path, shared, *command)
    assert (refused.returncode, (shared / "ran").exists()) == (1, False)
    assert f"vesper trust {shared}\n" in refused.stderr

    assert run_vesper(tmp_path, shared, "trust", ".").stdout == f"trusted: {shared} and everything below it\n"
    kept = tmp_path / ".config" / "vesper" / "trusted.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    run_vesper(tmp_path, shared, *command)
    assert (shared / "ran").exists()
    (shared / "ran").unlink()

    assert run_vesper(tmp_path, shared, "trust", "--list").stdout == f"{shared}  (of uid {shared.stat().st_uid})\n"
    assert run_vesper(tmp_path, shared, "trust", "--remove", ".").returncode == 0
    assert run_vesper(tmp_path, shared, *command).returncode == 1
    assert not (shared / "ran").exists()
    again = run_vesper(tmp_path, shared, "trust", "--remove", ".")
    assert (again.returncode, "is not in the list" in again.stderr) == (1, True)


def test_trust_ends_where_the_folder_gets_another_owner(shared: Path, tmp_path: Path) -> None:
    run_vesper(tmp_path, shared, "trust", ".")
    kept = tmp_path / ".config" / "vesper" / "trusted.json"
    kept.write_text(json.dumps({str(shared): shared.stat().st_uid + 1}))
    assert run_vesper(tmp_path, shared, "run", "fee", "-i", "amount=1").returncode == 1


def test_a_list_that_others_can_write_is_ignored(shared: Path, tmp_path: Path) -> None:
    run_vesper(tmp_path, shared, "trust", ".")
    (tmp_path / ".config" / "vesper" / "trusted.json").chmod(0o666)
    refused = run_vesper(tmp_path, shared, "run", "fee", "-i", "amount=1")
    assert (refused.returncode, "is ignored: other users can change it" in refused.stderr) == (1, True)


def test_commands_that_only_read_accept_nodes_of_others(shared: Path, tmp_path: Path) -> None:
    for command in (("check", "--no-cache"), ("nodes", "show", "fee"), ("test", "fee")):
        done = run_vesper(tmp_path, shared, *command)
        assert (done.returncode, done.stderr) == (0, ""), command


def test_a_module_that_others_can_write_is_not_imported(place: Path, tmp_path: Path) -> None:
    (place / "nodes").mkdir()
    (place / "nodes" / "fee_v1.vsp").write_text(NODE + "security: {audit_level: detailed}\n")
    (place / "vesper.toml").write_text(SETTINGS)
    (place / "planted.py").write_text(PLANTED)
    (place / "planted.py").chmod(0o666)
    refused = run_vesper(tmp_path, place, "run", "fee", "-i", "amount=1")
    assert (refused.returncode, (place / "ran").exists()) == (1, False)
    assert f"every user can write to {place}/planted.py" in refused.stderr


def test_a_state_folder_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "fee_v1.vsp").write_text(NODE + "security: {audit_level: detailed}\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".vesper").symlink_to("elsewhere")
    checked = run_vesper(tmp_path, tmp_path, "check")
    assert (checked.returncode, "without a cache" in checked.stderr) == (0, True)
    refused = run_vesper(tmp_path, tmp_path, "run", "fee", "-i", "amount=1")
    assert (refused.returncode, "is a symbolic link" in refused.stderr) == (1, True)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_state_folder_is_private_also_one_of_an_earlier_release(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "fee_v1.vsp").write_text(NODE)
    state = tmp_path / ".vesper"
    for before in (None, 0o755, 0o750):
        if before is not None:
            state.chmod(before)
            (state / "cache" / "checked").unlink()
        assert run_vesper(tmp_path, tmp_path, "check").returncode == 0
        assert state.stat().st_mode & 0o777 == 0o700
