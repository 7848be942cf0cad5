"""What `make bench` writes into docs/benchmarks: a page with tables, pictures, and the numbers as JSON."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.pictures import Bar, bars
from tests.bench.workloads import ROOT
from tests.proofs.robustness.proof import STATE, write_json
from vesper import __version__
from vesper.cli.bench.interpreter import this_interpreter
from vesper.cli.bench.rounds import time_text

FOLDER = ROOT / "docs" / "benchmarks"
RAW = STATE / "bench"
"""The ignored folder of raw results."""
_HOW = (
    "[Measure](../how-to/measure.md) defines what is compared and how. Compare ratios of one run only, never times "
    "of different runs or machines."
)
GROWTH = {
    "growth_lines": "W2 with more lines",
    "growth_steps": "Nodes of more steps",
    "growth_rows": "Batches of more rows",
}
"""The pictures of `make bench-growth`, with their titles."""
BUSY = 0.5
"""Load for each processor, from which the page says that the machine was busy."""


@dataclass(frozen=True)
class Row:
    name: str
    seconds: float
    ratio: float
    """Of plain Python with contracts, or what the section says."""
    numbers: str = ""
    verdict: str = ""
    spread: float | None = None
    is_ours: bool = False


@dataclass(frozen=True)
class Section:
    key: str
    title: str
    about: str
    base: str
    """What the ratios are to."""
    rows: Sequence[Row]
    missing: Sequence[str] = ()


@dataclass(frozen=True)
class Bound:
    """One of the bars that Vesper sets itself."""

    what: str
    most: float
    found: float | None
    """None where it was not measured."""
    is_least: bool = False
    beside: str = ""
    """What the machine could do at that time, where the bar is for one that can."""

    @property
    def verdict(self) -> str:
        if self.found is None:
            return "not measured"
        is_met = self.found >= self.most if self.is_least else self.found <= self.most
        return ("met" if is_met else "NOT MET") + (f"; {self.beside}" if self.beside else "")


@dataclass
class Report:
    sections: list[Section] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)
    machine: dict[str, Any] = field(default_factory=dict)


def machine() -> dict[str, Any]:
    """Where and with what it was measured."""
    interpreter = this_interpreter()
    return {
        "processor": _processor(),
        "processors": os.cpu_count(),
        "architecture": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "python": interpreter.described(),
        "vesper": f"{__version__}, {_commit()}",
        "load": round(os.getloadavg()[0], 2),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _commit() -> str:
    ran = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return ran.stdout.strip() or "no commit"


def is_busy(told: Mapping[str, Any]) -> bool:
    return bool(told["load"] > BUSY * (told["processors"] or 1))


def page(report: Report, folder: Path = FOLDER) -> str:
    told = report.machine
    lines = [
        "# Benchmarks",
        "",
        f"Written by `make bench` on {told['date']}; do not edit. {_HOW}",
        "",
        f"- Machine: {told['processor']}, {told['processors']} processors, {told['architecture']}, {told['system']}",
        f"- Python: {told['python']}",
        f"- Vesper: {told['vesper']}",
    ]
    if is_busy(told):
        lines.append(
            f"- **The machine was busy** (load {told['load']} when it began): the best rounds count and ratios mostly "
            "hold, times do not."
        )
    if report.bounds:
        lines += ["", "## Bars", "", "| | bar | found | |", "|---|---|---|---|"]
        for each in report.bounds:
            found = "–" if each.found is None else f"{each.found:.3g}"
            bar = f"at {'least' if each.is_least else 'most'} {each.most:.3g}"
            lines.append(f"| {each.what} | {bar} | {found} | {each.verdict} |")
    for section in report.sections:
        lines += ["", *_section(section)]
    grown = {key: title for key, title in GROWTH.items() if (folder / f"{key}.svg").is_file()}
    if grown:
        lines += [
            "",
            "## Growth",
            "",
            "Written by `make bench-growth`; what is linear is parallel to the dashed lines.",
        ]
        for key, title in grown.items():
            lines += ["", f"![{title}]({key}.svg)"]
    return "\n".join(lines) + "\n"


def _section(section: Section) -> list[str]:
    lines = [f"## {section.title}", "", section.about, ""]
    if section.rows:
        lines += [f"![{section.title}]({section.key}.svg)", ""]
        lines += [f"| | time | of {section.base} | numbers | answers | spread |", "|---|---|---|---|---|---|"]
        for each in sorted(section.rows, key=lambda row: row.seconds):
            name = f"**{each.name}**" if each.is_ours else each.name
            spread = "" if each.spread is None else f"{each.spread:.2f}"
            cells = [name, time_text(each.seconds), f"{each.ratio:.3f}", each.numbers, each.verdict, spread]
            lines.append(f"| {' | '.join(cells)} |")
    if section.missing:
        lines += ["", *(f"- not there: {each}" for each in section.missing)]
    return lines


def picture(section: Section) -> str:
    rows = [Bar(each.name, each.seconds * 1e9, time_text(each.seconds), each.is_ours) for each in section.rows]
    return bars(section.title, f"nanoseconds, scale of powers of ten; {section.about}", rows)


def as_json(report: Report) -> dict[str, Any]:
    return {
        "machine": report.machine,
        "bars": [
            {"what": each.what, "most" if not each.is_least else "least": each.most, "found": each.found,
             "verdict": each.verdict}
            for each in report.bounds
        ],
        "sections": {
            section.key: {
                "title": section.title,
                "base": section.base,
                "rows": [
                    {"name": each.name, "ns": round(each.seconds * 1e9, 1), "ratio": round(each.ratio, 4),
                     "answers": each.verdict}
                    for each in sorted(section.rows, key=lambda row: row.seconds)
                ],
                "missing": list(section.missing),
            }
            for section in report.sections
        },
    }  # fmt: skip


def summary(report: Report) -> dict[str, Any]:
    """Return the machine, the bars, and the ratios of Vesper's own rows; the page has all rows."""
    document = as_json(report)
    return {
        "machine": document["machine"],
        "bars": [
            {**each, **{key: _significant(each[key]) for key in ("most", "least", "found") if each.get(key)}}
            for each in document["bars"]
        ],
        "ratios": {
            section.key: {each.name: _significant(each.ratio) for each in section.rows if each.is_ours}
            for section in report.sections
            if any(each.is_ours for each in section.rows)
        },
    }


def _significant(value: float) -> float:
    return float(f"{value:.4g}")


def write(report: Report, folder: Path = FOLDER, raw: Path = RAW) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(page(report, folder), encoding="utf-8")
    write_json(raw / "results.json", as_json(report))
    write_json(folder / "results.json", summary(report))
    for section in report.sections:
        if section.rows:
            (folder / f"{section.key}.svg").write_text(picture(section), encoding="utf-8")
