"""Expected texts stored as files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Golden:
    update: bool

    def check(self, path: Path, text: str) -> None:
        if self.update:
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path.relative_to(ROOT)} is missing; `make update` writes it"
        assert text == path.read_text(encoding="utf-8"), f"{path.relative_to(ROOT)} differs; `make update` rewrites it"
