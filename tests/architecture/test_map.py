"""The table "Where to look" of docs/architecture.md names files and folders that exist."""

from __future__ import annotations

import re

import pytest

from tests.support.nodes import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
_QUOTED = re.compile(r"`([\w*-]*[./][\w./*-]*)`")


def rows() -> list[str]:
    section = PAGE[PAGE.index("## Where to look") : PAGE.index("## The seams")]
    return [line.split("|")[2] for line in section.splitlines() if line.startswith("| ") and "`" in line.split("|")[2]]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.strip()[:60])
def test_every_place_exists(row: str) -> None:
    """A name without a folder lies beside the place before it; NAME and FAMILY stand for any."""
    last = ROOT
    for text in _QUOTED.findall(row):
        if "NAME" in text or "FAMILY" in text:
            last = (ROOT / text).parent.parent if "NAME" in text else (ROOT / text).parent
            continue
        tried = [ROOT / text, last / text, last.parent / text]
        found = next(
            (list(place.parent.glob(place.name)) for place in tried if list(place.parent.glob(place.name))), None
        )
        assert found, f"docs/architecture.md names {text}, which does not exist"
        last = found[0].parent if found[0].is_file() else found[0]
