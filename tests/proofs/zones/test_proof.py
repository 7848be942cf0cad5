"""A sample of `make proof-zones`, and the data that both engines read."""

from __future__ import annotations

from pathlib import Path

from tests.proofs.zones.campaign import run, zone_names
from vesper.engines.registry import ENGINES
from vesper.kernels.calendar.zones import zone_names as known_names
from vesper.values.generated.zone_tables import ZONES

ROOT = Path(__file__).parents[3]
SAMPLE = ["Europe/Berlin", "Europe/Dublin", "America/Nuuk", "Africa/Casablanca", "Australia/Lord_Howe", "Pacific/Apia"]


def test_zones_have_the_offsets_of_zoneinfo() -> None:
    told: list[str] = []
    assert run({name: ENGINES[name] for name in ("python", "interp")}, SAMPLE, 500, 7, told.append) == 0, told


def test_both_engines_read_one_text_with_every_zone_of_the_package() -> None:
    assert (ROOT / "direct_runtime/crates/vesper-ir/src/time/zones.txt").read_text(encoding="ascii") == ZONES
    assert known_names() == sorted(zone_names())
