"""Every kept program on every engine. `make proof-coverage` adds to the folder; see docs/proofs/README.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from vesper.verify.corpus import KeptProgram, kept_programs
from vesper.verify.differential.forms import COMPARED
from vesper.verify.variants.campaign import verify_kept

FOLDER = Path(__file__).parent / "programs"
KEPT = kept_programs(FOLDER)
MAX_KEPT = 200


def test_there_are_programs_but_not_too_many() -> None:
    assert 0 < len(KEPT) <= MAX_KEPT


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.path.stem)
def test_the_engines_agree_on_a_kept_program(kept: KeptProgram) -> None:
    report = verify_kept(COMPARED, [kept])
    assert report.executions > 0
    assert report.passed, report.failures
