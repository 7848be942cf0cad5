"""A collection of many nodes: copies of `nodes/` under other ids, with their calls, libraries and rows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.proofs.robustness.proof import ROOT

SHIPPED = ROOT / "nodes"


def write_collection(folder: Path, count: int) -> list[Path]:
    """Write this many nodes below `nodes` in a folder; return their files."""
    nodes = folder / "nodes"
    sources = sorted(SHIPPED.rglob("*.vsp"))
    names = "|".join(sorted((each.stem.rpartition("_v")[0] for each in sources), key=len, reverse=True))
    words = "|".join(each for each in names.split("|") if "_" in each)
    called = re.compile(rf"\b(?:(?:{names})(?=_v[0-9])|(?:{words})\b)")
    written: list[Path] = []
    copy = 0
    while len(written) < count:
        part = nodes / f"part_{copy}"
        for source in sources[: count - len(written)]:
            target = part / source.parent.name / source.name.replace("_v", f"_c{copy}_v")
            target.parent.mkdir(parents=True, exist_ok=True)
            text = called.sub(lambda found: f"{found[0]}_c{copy}", source.read_text("utf-8"))  # noqa: B023
            target.write_text(re.sub(r"(path: )/", rf"\1/c{copy}/", text), "utf-8")
            written.append(target)
        for rows in SHIPPED.rglob("*.csv"):
            if (part / rows.parent.name).is_dir():
                shutil.copy(rows, part / rows.parent.name)
        copy += 1
    return written
