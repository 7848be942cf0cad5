"""Time zones: both engines against Python's `zoneinfo` on the same data.

    python -m tests.proofs.zones.campaign [--moments N] [--zones N] [--seed N]

Every change of every zone of the package `tzdata` from 1970 to 2037, one second around it, and random moments: the
offset, the local day and time, and the way back for both moments that a local time may mean. `zoneinfo` reads the
package alone, because its search path is empty. Ends with 1 where any answer differs.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import zoneinfo
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib.resources import files

from tests.support.nodes import expression_node
from vesper.engines.engine import Engine
from vesper.engines.outcome import Returned
from vesper.values.types import DATE, STRING, TIME_OF_DAY, TIMESTAMP, ArrayOf, Record

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = 0, 2_145_916_800
"""1970 and the end of 2037, in seconds."""
_BATCH = 2_000
_FORWARD = (
    "[{offset: utc_offset(x.at, x.zone), day: local_date(x.at, x.zone), clock: local_time(x.at, x.zone)} "
    "FOR x IN cases]"
)
_BACK = (
    "[{first: at_zone(x.day, x.clock, x.zone), earlier: at_zone(x.day, x.clock, x.zone, earlier), "
    "later: at_zone(x.day, x.clock, x.zone, later)} FOR x IN cases]"
)


def zone_names() -> list[str]:
    return (files("tzdata") / "zones").read_text(encoding="ascii").split()


def changes(zone: zoneinfo.ZoneInfo) -> list[int]:
    """Return the moments between 1970 and 2037 at which the offset changes, by bisection between close samples."""

    def offset(second: int) -> timedelta | None:
        return (_EPOCH + timedelta(seconds=second)).astimezone(zone).utcoffset()

    found: list[int] = []
    step = 86_400 * 6  # some zones change twice in a month
    before = offset(_FIRST)
    for end in range(_FIRST + step, _LAST + step, step):
        after = offset(end)
        low, high = end - step, end
        if after != before:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == before else (low, middle)
            found.append(high)
        before = after
    return found


def moments(names: list[str], count: int, chance: random.Random) -> Iterator[tuple[str, datetime]]:
    for name in names:
        zone = zoneinfo.ZoneInfo(name)
        for change in changes(zone):
            for second in (-1, 0, 1):
                yield name, _EPOCH + timedelta(seconds=change + second)
    for _ in range(count):
        # A third from the whole range of years, the rest where zones change.
        wide = chance.random() < 0.33
        second = chance.randrange(-62_135_000_000, 253_402_000_000) if wide else chance.randrange(_FIRST, 2 * _LAST)
        yield chance.choice(names), _EPOCH + timedelta(seconds=second, microseconds=chance.choice((0, 0, 1, 999_999)))


def expected(name: str, moment: datetime) -> tuple[dict[str, object], dict[str, object]]:
    """Return offset, day and time, and the moments of that local time."""
    zone = zoneinfo.ZoneInfo(name)
    local = moment.astimezone(zone)
    naive = local.replace(tzinfo=None, fold=0)
    both = [(naive - offset).replace(tzinfo=UTC) for offset in _offsets(naive, zone)]
    forward: dict[str, object] = {"offset": local.utcoffset(), "day": local.date(), "clock": naive.time()}
    return forward, {"first": both[0], "earlier": min(both), "later": max(both)}


def _offsets(naive: datetime, zone: zoneinfo.ZoneInfo) -> list[timedelta]:
    found = [naive.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1)]
    return [each for each in found if each is not None]


def skipped(name: str, moment: datetime) -> tuple[datetime, dict[str, object]] | None:
    """Return a local time that clocks skip at a moment, and its moments; None where they skip none."""
    zone = zoneinfo.ZoneInfo(name)
    before = (moment - timedelta(seconds=1)).astimezone(zone)
    if moment.astimezone(zone).utcoffset() <= before.utcoffset():  # type: ignore[operator]  # a zone has offsets
        return None
    naive = before.replace(tzinfo=None, fold=0) + timedelta(seconds=1)
    both = [(naive - offset).replace(tzinfo=UTC) for offset in _offsets(naive, zone)]
    return naive, {"first": both[0], "earlier": min(both), "later": max(both)}


def run(
    engines: Mapping[str, Engine], names: list[str], count: int, seed: int, report: Callable[[str], None] = print
) -> int:
    """Return the number of answers that differ."""
    zoneinfo.reset_tzpath(to=())
    zoneinfo.ZoneInfo.clear_cache()
    started = time.perf_counter()
    there: list[dict[str, object]] = []
    back: list[dict[str, object]] = []
    wanted: list[dict[str, object]] = []
    wanted_back: list[dict[str, object]] = []
    for name, moment in moments(names, count, random.Random(seed)):
        forward, answers = expected(name, moment)
        there.append({"zone": name, "at": moment})
        wanted.append(forward)
        back.append({"zone": name, "day": forward["day"], "clock": forward["clock"]})
        wanted_back.append(answers)
        if (gap := skipped(name, moment)) is not None:
            back.append({"zone": name, "day": gap[0].date(), "clock": gap[0].time()})
            wanted_back.append(gap[1])
    report(
        f"{len(names)} zones, {len(there):,} moments, {len(back):,} local times, {time.perf_counter() - started:.1f} s"
    )
    there_type = ArrayOf(Record((("zone", STRING), ("at", TIMESTAMP))))
    back_type = ArrayOf(Record((("zone", STRING), ("day", DATE), ("clock", TIME_OF_DAY))))
    nodes = (
        (expression_node(_FORWARD, {"cases": there_type}), there, wanted),
        (expression_node(_BACK, {"cases": back_type}), back, wanted_back),
    )
    wrong = 0
    for label, engine in engines.items():
        different = 0
        for compiled, rows, answers_of in nodes:
            program = engine.load(compiled)
            for start in range(0, len(rows), _BATCH):
                outcome = program.call({"cases": rows[start : start + _BATCH]})
                assert isinstance(outcome, Returned), outcome
                results = outcome.value["result"]
                assert isinstance(results, list)
                for row, want, got in zip(rows[start:], answers_of[start : start + _BATCH], results, strict=False):
                    if got != want:
                        different += 1
                        if different <= 5:
                            report(f"{row}: {label} has {got!r}, not {want}")
        report(f"{label}: {different} differ")
        wrong += different
    return wrong


def main() -> int:
    from vesper.engines.direct_engine import DirectEngine
    from vesper.engines.python_engine import PythonEngine

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=100_000)
    parser.add_argument("--zones", type=int, help="a sample of this many zones; all by default")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    names = zone_names()
    if options.zones is not None:
        names = random.Random(options.seed).sample(names, options.zones)
    wrong = run({"python": PythonEngine(), "interp": DirectEngine()}, names, options.moments, options.seed)
    print("identical" if not wrong else f"{wrong} answers differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
