"""A small part of `make proof-escapes`, and its control: careless settings are noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.escapes.campaign import attempt_all
from tests.proofs.escapes.escapes import ESCAPES

CHOSEN = ("a note that ends the data", "an allowed command that reads outside", "another schema after the first call")
CARELESS = ("writing outside the pattern", "an allowed command that reads outside")


@pytest.mark.parametrize("names, is_careless", [(CHOSEN, False), (CARELESS, True)], ids=["guarded", "careless"])
def test_nothing_is_performed_without_grant(tmp_path: Path, names: tuple[str, ...], is_careless: bool) -> None:
    chosen = [each for each in ESCAPES if each.name in names]
    assert len(chosen) == len(names)
    for ran in attempt_all(chosen, tmp_path / "estate", is_careless=is_careless):
        assert bool(ran.breaches) == is_careless, (ran.escape.name, ran.breaches)


def test_names_tell_escapes_apart() -> None:
    assert len({(each.kind, each.name) for each in ESCAPES}) == len(ESCAPES) >= 60
