"""Sequences on both sides: the reference draws them, the driver repeats them, and observations have to be equal."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.proofs.machines.draws import FORKS, STEPS, THEMES, some_settings
from tests.proofs.machines.driver import Driver
from tests.proofs.machines.records import Record, Side, explain, reset
from tests.proofs.machines.reference.commands import COMMANDS
from tests.proofs.machines.reference.coverage import Seen
from tests.proofs.machines.reference.kernel import Settings
from tests.proofs.machines.reference.queries import QUERIES
from tests.proofs.machines.sequences import next_record

_LENGTHS = (4, 6, 8, 8, 12)
_LENGTHS_OF_STEPS = (8, 10, 12, 16, 28)
NAMES = {*COMMANDS, "acquire_slot", "release_slot", *(each.__name__ for each in QUERIES)}


class Difference(Exception):
    """Both sides observed something else."""


@dataclass
class Sequence:
    """Records with what the reference observed after each."""

    name: str
    settings: Settings
    records: list[Record]
    observations: list[bytes]

    def encode(self) -> bytes:
        return reset(self.settings) + b"".join(record.encode() for record in self.records)


def draw(seed: int, number: int, seen: Seen | None = None) -> Sequence:
    """Draw a sequence and perform it on the reference."""
    chance = random.Random(seed * 1_000_003 + number)
    opening, theme = chance.choice(THEMES)
    settings = some_settings(chance, theme)
    side = Side(settings, seen)
    found = Sequence(f"--seed {seed} --show {number}", settings, [], [])
    for place in range(chance.choice(_LENGTHS_OF_STEPS if theme in (STEPS, FORKS) else _LENGTHS)):
        record = next_record(chance, side.kernel, opening[place : place + 1] or theme)
        found.records.append(record)
        found.observations.append(side.perform(record))
    missed = side.missed()
    if missed:
        raise Difference(f"{found.name}: the reference changed {missed} without naming it")
    return found


def perform(settings: Settings, records: list[Record], name: str = "given") -> Sequence:
    """Perform given records on the reference."""
    side = Side(settings)
    return Sequence(name, settings, records, [side.perform(record) for record in records])


def compare(sequence: Sequence, observations: list[bytes]) -> None:
    """Refuse observations of the driver that mean something else than those of the reference."""
    if len(observations) != len(sequence.records):
        raise Difference(f"{sequence.name}: {len(observations)} observations of {len(sequence.records)} records")
    if observations == sequence.observations:
        return
    for place, (record, expected, found) in enumerate(
        zip(sequence.records, sequence.observations, observations, strict=True)
    ):
        if expected == found:
            continue
        one, other = explain(record.name, expected), explain(record.name, found)
        if one != other:
            raise Difference(_report(sequence, place, one, other))


def run(driver: Driver, sequences: list[Sequence]) -> None:
    """Repeat sequences on the driver, and compare."""
    driver.send(b"".join(each.encode() for each in sequences))
    receive(driver, sequences)


def receive(driver: Driver, sequences: list[Sequence]) -> None:
    observations, place = driver.receive(), 0
    for sequence in sequences:
        compare(sequence, observations[place : place + len(sequence.records)])
        place += len(sequence.records)


def _report(sequence: Sequence, place: int, one: dict[str, object], other: dict[str, object]) -> str:
    lines = [f"{sequence.name}: the sides differ after record {place + 1}"]
    lines += [f"  {number}. {show(record)}" for number, record in enumerate(sequence.records[: place + 1], 1)]
    for part in sorted(one.keys() | other.keys()):
        left, right = one.get(part, "nothing"), other.get(part, "nothing")
        if left != right:
            lines += [f"{part} of the reference:", f"    {_flat(left)}", f"{part} of Rust:", f"    {_flat(right)}"]
    return "\n".join(lines)


def _flat(value: object) -> str:
    return " ".join(str(value).split())


def show(record: Record) -> str:
    """Return a record on one line."""
    shown = _flat(record.message)
    if len(shown) > 900 and record.name in ("execute_pipeline", "initialize_session"):
        shown = shown[:900] + " …"
    return f"at {record.now_us}: {record.name} {shown}"
