"""`make proof-kills`: processes that are killed in the middle of a purchase, and what is left of it.

A purchase reads, charges (keyed), moves an entity (txn), writes a row (txn), gives notice (unsafe), moves the entity
again. A process runs one and dies: at a kill point (docs/how-to/test-recovery.md), before or after every commit of the
journal and every effect, or at a random moment. Another process recovers, on the same engine or on the other one; some
of these die as well. Then everything outside has happened exactly once, or not at all where the journal had not heard
of the run; what is unsafe was done at most once, and is in doubt if it may have been. In doubt, the campaign looks
outside and resolves the run with what it found, as a person would.

The control runs the same with a provider that does not see the keys, and must find doubled charges: a campaign that
cannot fail shows nothing. `power` loses what was not synced as well (tests/proofs/kills/power.py).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.kills.purchase import (  # noqa: E402
    OutsideProcess,
    Place,
    arm,
    in_child,
    is_heard_of,
    postgres_place,
    purchase,
    recover_all,
    run_purchase,
    sqlite_place,
    wrong,
)
from tests.proofs.robustness.proof import PROOFS, STATE, engine_hash, whole_hash, write_json  # noqa: E402
from vesper.compiler import Compiled  # noqa: E402

NAME = "kills"
KILLS = 1_000
SEED = 20_261_115
HANDOFFS = [("python", "python"), ("interp", "interp"), ("python", "interp"), ("interp", "python")]
EFFECTS, CHANGES, COMMITS = 6, 5, 7
"""Of one purchase. The first effect is the read; the commits are the INTENT of each change, the RESULT of the unsafe
one and the END."""
POINTS = [
    "begin.appended",
    *(f"{place}:{number}" for number in range(1, CHANGES + 1) for place in ("intent.appended", "intent.committed")),
    *(f"{place}:{number}" for number in range(1, EFFECTS + 1) for place in ("effect.performed", "result.appended")),
    *(f"commit.written:{number}" for number in range(1, COMMITS + 1)),
    "result.committed",
    "end.appended",
    "end.committed",
]
CHARGED = "effect.performed:2"
NOTICED = ("intent.committed:4", "effect.performed:5", "result.appended:5", "commit.written:5")
"""Where the notice may have been given and its RESULT is not durable."""
RANDOM = "random"
SECOND_DEATH = "handoff.committed"
SECOND_DEATHS = 0.1
"""Share of the recoveries that die when they have taken the run over."""


@dataclass
class Findings:
    kills: int = 0
    survived: int = 0
    """Runs that had ended before their moment came."""
    by_store: Counter[str] = field(default_factory=Counter)
    by_handoff: Counter[str] = field(default_factory=Counter)
    by_point: Counter[str] = field(default_factory=Counter)
    in_doubt: int = 0
    unheard: int = 0
    """Runs that the journal had not heard of: run again, as their client would."""
    problems: list[str] = field(default_factory=list)


def kill_once(
    place: Place, compiled: Compiled, outside: OutsideProcess, number: int, draw: random.Random, found: Findings
) -> None:
    """One purchase, one kill, one recovery; then everything is counted."""
    first, second = HANDOFFS[number % len(HANDOFFS)]
    # Every point with every hand-off in turn; 7 and the number of points have no divisor in common.
    point = RANDOM if draw.random() < 0.25 else POINTS[(number // len(HANDOFFS)) * 7 % len(POINTS)]
    event = f"{place.kind}-{number}"
    pid = os.fork()
    if pid == 0:
        try:
            if point != RANDOM:
                arm(point)
            run_purchase(place, compiled, first, event)
        except BaseException:  # noqa: BLE001  # as above
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if point == RANDOM:
        time.sleep(draw.random() * 0.15)
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        found.kills += 1
        found.by_store[place.kind] += 1
        found.by_handoff[f"{first} to {second}"] += 1
        found.by_point[point] += 1
    elif os.WEXITSTATUS(status) == 0:
        found.survived += 1
    else:
        found.problems.append(f"{event}, {point}: the process failed by itself")
    before = outside.counts()
    if draw.random() < SECOND_DEATHS and os.WIFSIGNALED(in_child(lambda: recover_dying(place, second, outside))[0]):
        found.by_point[SECOND_DEATH] += 1
    status, said = in_child(lambda: recover_all(place, second, outside))
    if status != 0:
        found.problems.append(f"{event}, {point}: recovery failed")
        return
    found.in_doubt += event in said["doubts"]
    if point in NOTICED and event not in said["doubts"]:
        found.problems.append(f"{event}, {point}: the notice may have been given, and is not in doubt")
    if not is_heard_of(place, outside, event):
        if before[f"/charge {event}"]:
            found.problems.append(f"{event}, {point}: charged, and nobody knows of it")
        found.unheard += 1
        status, _ = in_child(lambda: run_purchase(place, compiled, second, event))
        if status != 0:
            found.problems.append(f"{event}, {point}: could not be run again")
    found.problems += [f"{event}, {point}, {first} to {second}: {each}" for each in wrong(place, outside, event)]


def recover_dying(place: Place, engine: str, outside: OutsideProcess) -> None:
    arm(SECOND_DEATH)
    recover_all(place, engine, outside)


def control(folder: Path, outside: OutsideProcess, compiled: Compiled, kills: int) -> int:
    """The same with a provider that sees no keys: how many charges were doubled."""
    place = sqlite_place(folder, outside.port, key_header="X-Nobody-Looks")
    doubled = 0
    for number in range(kills):
        event = f"control-{number}"
        pid = os.fork()
        if pid == 0:
            arm(CHARGED)
            run_purchase(place, compiled, "python", event)
            os._exit(1)
        os.waitpid(pid, 0)
        in_child(lambda: recover_all(place, "interp", outside))
        doubled += outside.counts()[f"/charge {event}"] == 2
    return doubled


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kills", type=int, default=KILLS)
    arguments.add_argument("--seed", type=int, default=SEED)
    arguments.add_argument("--store", choices=["sqlite", "postgres", "both"], default="both")
    arguments.add_argument("--folder", type=Path, default=STATE / NAME, help="on the disk that is to be durable")
    given = arguments.parse_args()
    from tests.proofs.kills.power import lose_power
    from tests.support.servers import Postgres

    shutil.rmtree(given.folder, ignore_errors=True)
    compiled = purchase()
    started = time.monotonic()
    found = Findings()
    outside = OutsideProcess()
    postgres = Postgres(durable=True) if given.store != "sqlite" else None
    try:
        places = [] if given.store == "postgres" else [sqlite_place(given.folder / "sqlite", outside.port)]
        if postgres is not None:
            places.append(postgres_place(postgres.new_database(), given.folder, outside.port))
        draw = random.Random(given.seed)
        number = 0
        while found.kills < given.kills:
            kill_once(places[number % len(places)], compiled, outside, number // len(places), draw, found)
            number += 1
            _progress(found, given.kills)
        doubled = control(given.folder / "control", outside, compiled, min(20, given.kills))
        power = lose_power(given.folder / "power", outside, min(100, given.kills // 4 + 1), given.seed)
    finally:
        outside.close()
        if postgres is not None:
            postgres.remove()
    print(file=sys.stderr)
    report = {
        "source_hash": whole_hash(),
        "engine_hash": engine_hash(),
        "seed": given.seed,
        "kills": found.kills,
        "ended_before_the_kill": found.survived,
        "by_store": dict(found.by_store),
        "by_handoff": dict(found.by_handoff),
        "by_point": dict(sorted(found.by_point.items())),
        "in_doubt": found.in_doubt,
        "unheard_of_and_run_again": found.unheard,
        "lost_or_doubled": len(found.problems),
        "control_without_keys": {"kills": min(20, given.kills), "doubled": doubled},
        "power_losses": power,
        "elapsed_seconds": round(time.monotonic() - started, 1),
    }
    print(json.dumps(report, indent=2))
    for problem in [*found.problems, *power["problems"]][:20]:
        print(f"PROBLEM: {problem}", file=sys.stderr)
    failed = bool(found.problems or power["problems"]) or doubled == 0 or power["control_lost"] == 0
    if not failed and given.kills >= KILLS and given.store == "both":
        write_json(PROOFS / f"{NAME}.json", report)
    return int(failed)


def _progress(found: Findings, kills: int) -> None:
    if sys.stderr.isatty() or found.kills % 50 == 0:
        sys.stderr.write(f"\r{found.kills} of {kills} kills, {len(found.problems)} problems")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
