"""Counts in files of several processes: killed, forked, folded at the same time, of another version."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from vesper.values.generated.metrics import METRICS

_COUNT = """
import os, signal, sys
from vesper.observe.metrics import count, set_gauge, observe
from vesper.values.generated.metrics import CONNECTIONS, DIVERGENCES, JOURNAL_LAG
for _ in range(1000):
    count(DIVERGENCES, ("orders_v1",))
set_gauge(CONNECTIONS, (), 7)
observe(JOURNAL_LAG, (), 0.002)
"""
_DIE = "os.kill(os.getpid(), signal.SIGKILL)\n"
_RENDER = "from vesper.observe.metrics import render\nsys.stdout.write(render()[1].decode())\n"


def _start(code: str, folder: Path) -> subprocess.Popen[str]:
    environment = {"VESPER_METRICS_DIR": str(folder), "PATH": ""}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", f"import sys\n{code}"], env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


def _run(code: str, folder: Path) -> str:
    process = _start(code, folder)
    output, errors = process.communicate(timeout=60)
    assert process.returncode in (0, -9), errors
    return output


def _value(text: str, series: str) -> float | None:
    found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    return None if found is None else float(found[1])


DIVERGENCES = 'sir_divergences_total{node="orders_v1"}'


def test_a_killed_process_leaves_its_counts_and_no_gauge(tmp_path: Path) -> None:
    _run(_COUNT + _DIE, tmp_path)
    text = _run(_RENDER, tmp_path)
    assert _value(text, DIVERGENCES) == 1000
    assert _value(text, "sir_journal_lag_seconds_count") == 1
    assert _value(text, "sir_journal_lag_seconds_sum") == pytest.approx(0.002)
    assert "sir_connections" not in text


def test_processes_that_fold_at_the_same_time_count_each_file_once(tmp_path: Path) -> None:
    living = _start(_COUNT + "print('counted', flush=True)\nsys.stdin.read()\n", tmp_path)
    assert living.stdout is not None
    assert living.stdout.readline() == "counted\n"
    dying = [_start(_COUNT + _DIE, tmp_path) for _ in range(3)]
    for each in dying:
        each.communicate(timeout=60)
    rendering = [_start(_RENDER * 3, tmp_path) for _ in range(3)]
    for each in rendering:
        output, errors = each.communicate(timeout=60)
        assert output.count(f"{DIVERGENCES} 4000\n") == 3, errors
    text = _run(_RENDER, tmp_path)
    assert _value(text, "sir_connections") == 7
    assert len(list(tmp_path.glob("*-*.metrics"))) <= 4  # the living one and renderers that have just ended
    living.communicate(timeout=60)
    assert _value(_run(_RENDER, tmp_path), DIVERGENCES) == 4000


def test_a_file_that_a_crash_left_after_folding_is_not_counted_again(tmp_path: Path) -> None:
    _run(_COUNT + _DIE, tmp_path)
    (file,) = tmp_path.glob("*-*.metrics")
    shutil.copy(file, tmp_path / "copy")
    _run(_RENDER, tmp_path)
    assert not file.exists()
    shutil.move(tmp_path / "copy", file)
    assert _value(_run(_RENDER, tmp_path), DIVERGENCES) == 1000


def test_a_forked_child_counts_in_a_file_of_its_own(tmp_path: Path) -> None:
    forks = """
children = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        count(DIVERGENCES, ("orders_v1",), 10)
        count(DIVERGENCES, ("other_v1",), 1)
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
count(DIVERGENCES, ("orders_v1",))
"""
    text = _run(_COUNT + forks + _RENDER, tmp_path)
    assert _value(text, DIVERGENCES) == 1021
    assert _value(text, 'sir_divergences_total{node="other_v1"}') == 2


def test_label_values_beyond_the_limit_count_as_other(tmp_path: Path) -> None:
    many = 'for n in range(1500):\n    count(DIVERGENCES, (f"node_{n}_{{}}".format("x" * 500),))\n'
    text = _run(_COUNT + many + _RENDER, tmp_path)
    assert _value(text, 'sir_divergences_total{node="other"}') == 501
    assert max(map(len, re.findall(r'node="([^"]*)"', text))) == 120
    (file,) = tmp_path.glob("*-*.metrics")
    assert file.stat().st_size == 2 << 20


def test_a_file_of_another_version_is_removed_and_not_summed(tmp_path: Path) -> None:
    _run(_COUNT + _DIE, tmp_path)
    (file,) = tmp_path.glob("*-*.metrics")
    with file.open("r+b") as opened:
        opened.seek(8)
        opened.write(b"\xff" * 8)
    assert _value(_run(_RENDER, tmp_path), DIVERGENCES) is None
    assert not file.exists()


@pytest.mark.parametrize("name", ["1-a.metrics", "folded.metrics"])
def test_a_file_without_a_whole_number_hides_no_counts(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"VSP")
    assert _value(_run(_COUNT + _RENDER, tmp_path), DIVERGENCES) == 1000


def test_counts_move_to_a_directory_that_is_named_later(tmp_path: Path) -> None:
    later = f"from vesper.observe.metrics import use_directory\nuse_directory({str(tmp_path)!r})\n"
    assert not _run("import os\ndel os.environ['VESPER_METRICS_DIR']\n" + _COUNT + later + _DIE, tmp_path)
    assert _value(_run(_RENDER, tmp_path), DIVERGENCES) == 1000


def test_a_directory_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    process = _start(_COUNT, tmp_path / "file")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "metrics cannot be kept in" in errors


def test_every_declaration_has_a_name_of_its_own() -> None:
    assert [each.place for each in METRICS] == list(range(len(METRICS)))
    assert len({each.name for each in METRICS}) == len(METRICS)
