"""All rivals that are called once for each record, and why some are missing."""

from __future__ import annotations

from tests.bench import plain
from tests.bench.peers import built, by_hand, rules
from tests.bench.peers.present import NotHere
from tests.bench.workloads import PLAIN, Contestant

FAMILIES = (built.floor, built.mypyc, built.cython, built.numba, rules.datalogic, rules.zen, rules.cel)


def by_people() -> list[Contestant]:
    found = []
    for title, function in built.FUNCTIONS.items():
        numbers = "native" if title == "W3" else "decimal"
        found.append(Contestant(PLAIN, title, getattr(by_hand, function), numbers=numbers))
        found.append(Contestant("plain Python, types checked too", title, getattr(plain, function), numbers=numbers))
    return found


def rivals() -> tuple[list[Contestant], list[str]]:
    found, missing = by_people(), []
    for family in FAMILIES:
        try:
            found += family()
        except NotHere as problem:
            missing.append(str(problem))
    return found, missing
