"""The cache in front of the pipeline: it says what a check would say, or nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.nodes import PAYMENT_DECISION
from vesper.compiler import check_files as checking
from vesper.compiler import compile_file, node_cache
from vesper.compiler.check_files import check_files
from vesper.compiler.check_result import Checked, check_bytes, diagnostic_from_data, diagnostic_to_data
from vesper.compiler.node_cache import NodeCache, cache_path, compiler_fingerprint

LONG_AGO = 1_700_000_000
GOOD = PAYMENT_DECISION.read_text(encoding="utf-8").replace("payment_decision_v1", "good_v1")
VARIANTS = {
    "good": GOOD,
    "error": GOOD.replace("- amount > 0", "- ammount > 0"),
    "warning": GOOD.replace("constants:\n", "constants:\n  idle: {type: integer, value: 1}\n"),
    "two": GOOD.replace("- fee >= 0", "- fe >= 0 AND 'x").replace("- amount > 0", "- é"),
    "empty": "",
    "yaml": "node_id: [\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder of nodes with one of each kind, old enough to be recognised by their stamps."""
    (tmp_path / "nodes").mkdir()
    for name, text in VARIANTS.items():
        write(tmp_path / "nodes" / f"{name}_v1.vsp", text.replace("good_v1", f"{name}_v1"))
    (tmp_path / "nodes" / "binary_v1.vsp").write_bytes(b"\xff")
    return tmp_path


def write(path: Path, text: str, at: int = LONG_AGO) -> None:
    path.write_text(text, encoding="utf-8")
    os.utime(path, (at, at))


def vesper(project: Path, *words: str, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "vesper", "check", *words],
        cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=60,
        env={**os.environ, **environment},
    )  # fmt: skip
    return done.returncode, done.stdout


def check(files: list[Path], cache_file: Path) -> list[Checked]:
    with NodeCache(cache_file) as cache:
        return list(check_files(files, cache))


def compiled_paths(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are really compiled from here on."""
    seen: list[str] = []
    original = check_bytes

    def spy(shown: str, data: bytes) -> Checked:
        seen.append(Path(shown).name)
        return original(shown, data)

    monkeypatch.setattr(checking, "check_bytes", spy)
    return seen


@pytest.mark.parametrize("style", ["full", "concise"])
def test_a_cached_check_prints_what_an_uncached_one_prints(project: Path, style: str) -> None:
    uncached = vesper(project, "--format", style, "--no-cache")
    assert not (project / ".vesper").exists()
    assert vesper(project, "--format", style, VESPER_NO_CACHE="1") == uncached
    assert not (project / ".vesper").exists()
    first = vesper(project, "--format", style)
    assert (project / ".vesper" / "cache" / "checked").is_file()
    assert (project / ".vesper" / ".gitignore").read_text() == "*\n"
    second = vesper(project, "--format", style)
    assert first == second == uncached
    assert uncached[0] == 1


def test_nothing_that_did_not_change_is_compiled_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = sorted((project / "nodes").glob("*.vsp"))
    cache_file = project / "cache"
    compiled = compiled_paths(monkeypatch)
    first = check(files, cache_file)
    assert sorted(compiled) == [path.name for path in files]
    compiled.clear()
    second = check(files, cache_file)
    assert compiled == ["binary_v1.vsp"], "only what has no text is not kept"
    shown = [(each.source.path, each.diagnostics, each.semantic_hash) for each in second]
    assert shown == [(each.source.path, each.diagnostics, each.semantic_hash) for each in first]


def test_a_change_is_seen(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project / "nodes" / "good_v1.vsp"
    cache_file = project / "cache"
    check([path], cache_file)
    compiled = compiled_paths(monkeypatch)
    write(path, GOOD, LONG_AGO + 5)
    assert not check([path], cache_file)[0].is_wrong
    assert compiled == [], "touched, but the same bytes"
    write(path, VARIANTS["error"], LONG_AGO + 5)
    assert check([path], cache_file)[0].is_wrong
    assert compiled == ["good_v1.vsp"]
    write(path, GOOD, LONG_AGO + 5)
    assert not check([path], cache_file)[0].is_wrong


def test_a_new_file_is_not_believed_by_its_stamp(tmp_path: Path) -> None:
    path = tmp_path / "new_v1.vsp"
    path.write_text(GOOD, encoding="utf-8")
    status = path.stat()
    check([path], tmp_path / "cache")
    changed = GOOD.replace("- amount > 0", "- amount < x")
    assert len(changed) == len(GOOD)
    path.write_text(changed, encoding="utf-8")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert check([path], tmp_path / "cache")[0].is_wrong


def test_the_ir_is_kept(project: Path) -> None:
    path = project / "nodes" / "good_v1.vsp"
    check([path], project / "cache")
    compiled, _ = compile_file(path)
    assert compiled is not None
    with NodeCache(project / "cache") as cache:
        found = cache.find(path)
        assert found is not None
        assert found.semantic_hash == compiled.semantic_hash
        assert cache.ir(path) == compiled.ir
        assert cache.ir(project / "nodes" / "other_v1.vsp") is None


def test_the_ir_of_others_survives_a_save(project: Path) -> None:
    one, other = project / "nodes" / "good_v1.vsp", project / "nodes" / "warning_v1.vsp"
    check([one], project / "cache")
    check([other], project / "cache")
    with NodeCache(project / "cache") as cache:
        for path in (one, other):
            compiled, _ = compile_file(path)
            assert compiled is not None
            assert cache.ir(path) == compiled.ir


@pytest.mark.parametrize("fraction", [0.0, 0.02, 0.1, 0.5, 0.99])
def test_a_damaged_cache_is_an_empty_one(project: Path, fraction: float) -> None:
    files = sorted((project / "nodes").glob("*.vsp"))
    cache_file = project / "cache"
    expected = [(each.diagnostics, each.semantic_hash) for each in check(files, cache_file)]
    whole = cache_file.read_bytes()
    at = int(len(whole) * fraction)
    for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], whole[:at] + b"\0" * 9):
        cache_file.write_bytes(damaged)
        with NodeCache(cache_file) as cache:
            path = project / "nodes" / "good_v1.vsp"
            compiled, _ = compile_file(path)
            assert compiled is not None
            assert cache.ir(path) in (None, compiled.ir)
        assert [(each.diagnostics, each.semantic_hash) for each in check(files, cache_file)] == expected


def test_a_cache_of_another_compiler_is_an_empty_one(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project / "nodes" / "good_v1.vsp"
    check([path], project / "cache")
    monkeypatch.setattr(node_cache, "compiler_fingerprint", lambda: "0" * 64)
    with NodeCache(project / "cache") as cache:
        assert cache.find(path) is None


def test_the_fingerprint_changes_with_the_front_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = ("compiler", "language/check", "language/diagnostics", "language/ir", "language/syntax", "values")
    for name in packages:
        (tmp_path / "vesper" / name).mkdir(parents=True)
        (tmp_path / "vesper" / name / "x.py").write_text("1")
    monkeypatch.setattr(node_cache, "__file__", str(tmp_path / "vesper" / "compiler" / "node_cache.py"))
    seen = {compiler_fingerprint()}
    for name in packages:
        (tmp_path / "vesper" / name / "x.py").write_text("12")
        seen.add(compiler_fingerprint())
    assert len(seen) == 7


def test_the_cache_is_bounded(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [project / "nodes" / f"{name}_v1.vsp" for name in ("good", "error", "warning")]
    monkeypatch.setattr(node_cache, "MAX_NODES", 2)
    monkeypatch.setattr(node_cache, "MAX_IR_BYTES", 100)
    check(files, project / "cache")
    with NodeCache(project / "cache") as cache:
        assert [cache.find(path) is not None for path in files] == [False, True, True]
        assert [cache.ir(path) for path in files] == [None, None, None]
    assert (project / "cache").stat().st_size < 5_000


def test_a_cache_that_cannot_be_written_changes_nothing(project: Path) -> None:
    (project / "file").write_text("no folder")
    (checked,) = check([project / "nodes" / "good_v1.vsp"], project / "file" / "cache")
    assert not checked.is_wrong


def test_processes_at_the_same_time_leave_a_whole_cache(project: Path) -> None:
    command = [sys.executable, "-m", "vesper", "check"]
    processes = [subprocess.Popen(command, cwd=project, stderr=subprocess.DEVNULL) for _ in range(4)]
    assert {process.wait(timeout=60) for process in processes} == {1}
    head, index = (project / ".vesper" / "cache" / "checked").read_bytes().split(b"\n", 1)
    assert len(json.loads(index[: int(head.split()[2])])) == len(VARIANTS)
    assert [path.name for path in (project / ".vesper" / "cache").iterdir()] == ["checked"]


def test_many_files_are_checked_alike_on_many_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "_processors", lambda: 3)
    files = []
    for number in range(3 * checking.FEW):
        text = list(VARIANTS.values())[number % len(VARIANTS)]
        files.append(tmp_path / f"x{number}_v1.vsp")
        write(files[-1], text)
    files.append(tmp_path / "absent_v1.vsp")
    together = list(check_files(files, None))
    monkeypatch.setattr(checking, "_processors", lambda: 1)
    alone = list(check_files(files, None))
    for one, other in zip(together, alone, strict=True):
        assert (one.source.path, one.diagnostics, one.semantic_hash, one.ir) == (
            other.source.path, other.diagnostics, other.semantic_hash, other.ir
        )  # fmt: skip
        assert one.source.text == other.source.text or not one.diagnostics


def test_a_process_that_dies_leaves_its_share_to_the_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "_processors", lambda: 2)
    parent = os.getpid()
    original = check_bytes

    def dies(shown: str, data: bytes) -> Checked:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(shown, data)

    monkeypatch.setattr(checking, "check_bytes", dies)
    files = [tmp_path / f"x{number}_v1.vsp" for number in range(checking.FEW + 5)]
    for path in files:
        write(path, GOOD)
    assert [each.is_wrong for each in check_files(files, None)] == [False] * len(files)


def test_a_diagnostic_survives_as_data(project: Path) -> None:
    for checked in check_files(sorted((project / "nodes").glob("*.vsp")), None):
        for diagnostic in checked.diagnostics:
            assert diagnostic_from_data(json.loads(json.dumps(diagnostic_to_data(diagnostic)))) == diagnostic


def test_the_cache_is_beside_the_folder_of_nodes(project: Path) -> None:
    assert cache_path(project / "nodes") == (project / ".vesper" / "cache" / "checked").resolve()
    assert cache_path(project / "absent") is None


HEAVY = (
    "libcst",
    "hypothesis",
    "vesper._direct",
    "vesper.language.syntax",
    "vesper.language.check",
    "vesper.engines",
)


def loaded(project: Path, *words: str) -> list[str]:
    """Which of the heavy modules a command loads."""
    script = (
        "import sys; from vesper.cli.main import main\n"
        "try: main()\n"
        f"except SystemExit: print(*[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words], cwd=project, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stderr.split()


def test_a_cached_check_loads_no_parser(project: Path) -> None:
    for name in ("error", "two", "empty", "yaml", "binary", "warning"):
        (project / "nodes" / f"{name}_v1.vsp").unlink()
    assert "vesper.language.syntax" in loaded(project, "check")
    assert loaded(project, "check") == []


def test_help_of_nodes_loads_no_parser(project: Path) -> None:
    for words in (["nodes", "--help"], ["nodes", "list", "--help"], ["check", "--help"]):
        assert loaded(project, *words) == []


def test_help_loads_no_part_of_the_compiler(project: Path) -> None:
    assert loaded(project, "--help") == []
    script = "import sys; from vesper.cli import main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = {name for name in done.stdout.split() if name.startswith("vesper")}
    output = {"vesper.cli.output", "vesper.cli.output.terminal"}
    assert modules == {"vesper", "vesper.cli", "vesper.cli.exits", "vesper.cli.main"} | output
    assert not {"json", "decimal", "hashlib", "dataclasses", "importlib.metadata"} & set(done.stdout.split())
