"""`vesper migrate plot`: pictures that say what they show."""

from __future__ import annotations

import json
import struct
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.journalled import invoke
from tests.unit.migration.support.remote_answers import FEE, Told
from vesper.migration.control.state import Close, EngineFaulted, Resume
from vesper.migration.stores.store import Line

_SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    monkeypatch.chdir(tmp_path)
    found = Told(tmp_path)
    found.batch(runs=100)
    found.batch(runs=200)
    found.diverge()
    found.batch(FEE, EngineFaulted("it broke"))
    yield found
    found.store.close()


def test_a_picture_in_svg(told: Told, tmp_path: Path) -> None:
    done = invoke("migrate", "plot", "fee", "-o", "fee.svg")
    assert (done.exit_code, done.stdout) == (0, "fee.svg: 5 points, 1 open divergence, seen once\n"), done.output
    root = ET.fromstring((tmp_path / "fee.svg").read_text(encoding="utf-8"))
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{_SVG}title") == "Confidence of fee_v1"
    described = root.findtext(f"{_SVG}desc") or ""
    assert "shadow_direct from 2026-11-15 12:00:00Z, then canary_direct from 2026-11-15 12:01:00Z" in described
    assert "1 divergence found, 1 of them open" in described
    assert "prefers-color-scheme: dark" in (root.findtext(f"{_SVG}style") or "")
    texts = [each.text for each in root.iter(f"{_SVG}text")]
    assert {"0.95", "0.999", "0.9999", "python_only", "divergence"} <= set(texts)
    marks = [each for each in root.iter(f"{_SVG}path") if each.get("class") == "mark"]
    assert [each.findtext(f"{_SVG}title") for each in marks] == ["1 divergence: 0dd0dd0dd0dd0dd0", None]


def test_the_counts_are_those_of_the_list(told: Told, tmp_path: Path) -> None:
    """What a divergence takes from its path is in the history, once or often; that is no count of divergences."""
    for _ in range(3):
        told.batch(FEE, Resume("ann", "mended"), runs=5)
        told.diverge()
    told.diverge(fingerprint="1" * 16)
    told.batch(FEE, Close("1" * 16, "ann", "mended"))
    (listed,) = json.loads(invoke("divergences", "list", "--format", "json").stdout)
    assert listed["count"] == 4
    done = invoke("migrate", "plot", "fee", "-o", "fee.svg")
    assert done.stdout.endswith(" points, 1 open divergence, seen 4 times\n")
    found = json.loads(invoke("migrate", "plot", "fee", "-o", "fee.svg", "--format", "json").stdout)
    assert (found["divergences"], found["times"]) == (1, 4)
    assert "2 divergences found, 1 of them open" in (tmp_path / "fee.svg").read_text(encoding="utf-8")


def test_a_divergence_that_cannot_be_read_is_said(told: Told, tmp_path: Path) -> None:
    told.store.transact(FEE, lambda transaction: transaction.put_divergence("1" * 16, "{}"))
    done = invoke("migrate", "plot", "fee", "-o", "fee.svg")
    assert (done.exit_code, "a divergence of fee_v1 cannot be read" in done.stderr) == (1, True), done.stderr
    assert not (tmp_path / "fee.svg").exists()


def test_a_program_is_told_what_was_drawn(told: Told) -> None:
    done = invoke("migrate", "plot", "fee", "-o", "fee.svg", "--format", "json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["node"], found["epoch"], found["picture"]) == (FEE.node, FEE.epoch, "fee.svg")
    assert found["points"] > 0
    assert (found["divergences"], found["times"]) == (1, 1)


def test_a_picture_in_png(told: Told, tmp_path: Path) -> None:
    done = invoke("migrate", "plot", "fee", "-o", "fee.png")
    assert done.exit_code == 0, done.output
    data = (tmp_path / "fee.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n")
    assert struct.unpack(">II", data[16:24]) == (1440, 660)


def test_without_matplotlib_there_is_no_png(told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = invoke("migrate", "plot", "fee", "-o", "fee.png")
    assert done.exit_code == 1
    assert "a PNG needs matplotlib: install `vesper[plots]`, or write a file that ends with .svg" in done.stderr
    assert not (tmp_path / "fee.png").exists()


def test_a_history_that_cannot_be_read_is_not_drawn(told: Told, tmp_path: Path) -> None:
    line = Line(told.store.history(FEE)[-1].number + 1, '{"kind": "changed"}', "x")
    told.store.transact(FEE, lambda transaction: transaction.append(line))
    done = invoke("migrate", "plot", "fee", "-o", "fee.svg")
    assert (done.exit_code, "`vesper migrate history` shows it" in done.stderr) == (1, True)
    assert not (tmp_path / "fee.svg").exists()


@pytest.mark.parametrize(
    "arguments, code, said",
    [
        (["fee", "-o", "fee.gif"], 2, "-o fee.gif: the file name must end with .svg or .png"),
        (["fee", "-o", "none/fee.svg"], 1, "none/fee.svg cannot be written: No such file or directory"),
        (["feee_v1", "-o", "fee.svg"], 1, "did you mean `fee_v1`?"),
        (["fee"], 2, "Missing option '-o'"),
    ],
)
def test_what_cannot_be_drawn(told: Told, arguments: list[str], code: int, said: str) -> None:
    done = invoke("migrate", "plot", *arguments)
    assert (done.exit_code, said in done.stderr) == (code, True), done.stderr
