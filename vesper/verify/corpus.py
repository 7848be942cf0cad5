"""Programs that are kept in a folder, because they reach code of the engine that no other kept program reaches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_SEED = re.compile(r"_([0-9]+)_v[0-9]+$", re.ASCII)


@dataclass(frozen=True, slots=True)
class KeptProgram:
    path: Path
    text: str
    seed: int
    """Seed of its inputs: the number in its name, or 0."""


def kept_programs(folder: Path) -> list[KeptProgram]:
    """Return the programs of a folder, by name. Raises `OSError` for a file that cannot be read."""
    return [
        KeptProgram(path, path.read_text(encoding="utf-8"), seed_of(path.stem)) for path in sorted(folder.glob("*.vsp"))
    ]


def seed_of(node_id: str) -> int:
    """Return the seed that the name of a program ends with; 0 without one."""
    found = _SEED.search(node_id)
    return 0 if found is None else int(found[1])
