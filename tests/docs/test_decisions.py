"""Check the index of decision records and the form of each record."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.goldens import Golden

FOLDER = Path(__file__).parents[2] / "docs" / "adr"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))


def title(record: Path) -> tuple[int, str]:
    """Return number and title of a record, from its first line."""
    matched = re.fullmatch(r"# (\d+)\. (.+)", record.read_text(encoding="utf-8").splitlines()[0])
    assert matched, f"{record.name} starts with `# NUMBER. TITLE`"
    return int(matched[1]), matched[2]


def test_the_index_lists_every_record_with_its_title(golden: Golden) -> None:
    """`make update` rewrites the rows of the index."""
    rows = [f"| {number} | [{text}]({record.name}) |" for record in RECORDS for number, text in [title(record)]]
    index = FOLDER / "README.md"
    head, rule, _ = index.read_text(encoding="utf-8").partition("|---|---|\n")
    golden.check(index, head + rule + "\n".join(rows) + "\n")


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_the_number_of_a_record_is_that_of_its_file(record: Path) -> None:
    assert title(record)[0] == int(record.name[:4])
