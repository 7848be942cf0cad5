"""What a kill of the process loses of its traffic: `make proof-migration-kills` runs it after `kill_store`.

A process serves a routed node without effects and writes the time of each answer to a pipe. It is killed with `kill -9`
at a random moment. Then the store must count every request, and have every comparison, that was answered more than
`BOUND_SECONDS` before the kill (docs/spec/migration.md, "What a kill loses"), and never more than were answered. In
half of the lives the last request differs between the engines, and the next process must find that divergence if the
kill came later than the bound.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import PROOFS, store_hash, write_json  # noqa: E402
from tests.unit.migration.support.routed import DECISION, compiled, divergences_of, payment, state_of  # noqa: E402
from vesper.config.settings import config_from  # noqa: E402
from vesper.migration.router.routes import Routes  # noqa: E402
from vesper.migration.stores.traffic import TRAFFIC, traffic_of  # noqa: E402

BOUND_SECONDS = 5.0
LIVES = 60
SEED = 20_261_117
_INTERVAL_SECONDS = 0.002
_TIME = struct.Struct("=cd")
_ANSWERED, _DIFFERED = b"a", b"d"


def routes_of(folder: Path) -> Routes:
    """Return routes with default settings, except that everything is followed."""
    store = f"sqlite:{folder / 'migration.db'}"
    routes = Routes(config_from({"migration": {"store": store, "follow_cpu": "6400 %"}}, folder))
    routes.helper.rerun = lambda *_, **__: None  # type: ignore[method-assign]
    return routes


# -- in the process that is killed ----------------------------------------------------------------


def serve(folder: Path, differs_after: float) -> None:
    import vesper

    routes = routes_of(folder)
    program = routes.program(compiled(ROOT / DECISION))
    right, is_lying = program._python.entry, [False]

    def lead(inputs: dict[str, Any]) -> Any:
        return {**right(inputs), "fee": Decimal("7.77")} if is_lying[0] else right(inputs)

    program._python.entry = lead
    node = vesper.load(ROOT / DECISION, engine="auto", routes=routes)
    begun = time.monotonic()
    for number in range(1, 1_000_000):
        is_lying[0] = 0 < differs_after < time.monotonic() - begun
        node.call(payment(f"{number % 90_000 + 1}.00"))
        os.write(1, _TIME.pack(_DIFFERED if is_lying[0] else _ANSWERED, time.monotonic()))
        if is_lying[0]:
            time.sleep(3600)
        time.sleep(_INTERVAL_SECONDS)


# -- the campaign ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Life:
    """What was answered before a kill, and what the store has of it."""

    killed: float
    answered: tuple[float, ...]
    differed: float | None
    counted: int
    compared: int
    divergences: int

    def lost_seconds(self, kept: int) -> float:
        """Return how long before the kill the first missing request was answered."""
        return self.killed - self.answered[kept] if kept < len(self.answered) else 0.0

    def problems(self) -> list[str]:
        found = []
        for what, kept in (("counts", self.counted), ("comparisons", self.compared)):
            if kept > len(self.answered) + 1:  # the kill may come between an answer and its line in the pipe
                found.append(f"{what}: {kept} of {len(self.answered)} requests")
            if (lost := self.lost_seconds(kept)) > BOUND_SECONDS:
                found.append(f"{what}: one is missing that was answered {lost:.2f} s before the kill")
        if self.differed is not None and self.killed - self.differed > BOUND_SECONDS and self.divergences != 1:
            found.append(f"a difference {self.killed - self.differed:.2f} s before the kill was not found")
        return found


def live_and_die(folder: Path, draw: random.Random) -> Life:
    differs_after = draw.choice([0.0, draw.uniform(0.5, 1.5)])
    lives = draw.uniform(1.0, 9.0)
    command = [sys.executable, __file__, "--serve", str(folder), "--differs-after", str(differs_after)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    data, begun = b"", None
    while begun is None or time.monotonic() < begun + lives:
        if select.select([process.stdout], [], [], 0.01)[0]:
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            assert chunk, "the process ended by itself"
            begun, data = begun or time.monotonic(), data + chunk
    killed = time.monotonic()
    process.send_signal(signal.SIGKILL)
    with process.stdout:
        data += process.stdout.read()
    process.wait()
    times = list(_TIME.iter_unpack(data[: len(data) // _TIME.size * _TIME.size]))
    return _life(folder, killed, times)


def _life(folder: Path, killed: float, times: list[tuple[bytes, float]]) -> Life:
    """Read the store as the next process finds it."""
    routes = routes_of(folder)
    try:
        program = routes.program(compiled(ROOT / DECISION))
        routes.migration.tend(is_all=True)
        store, key = routes.migration.store, program.live.key
        traffic = traffic_of(store.document(key, TRAFFIC), key.node)
        counted = sum(traffic.since(time.time_ns() // 1000, 48).values())
        found = divergences_of(routes, program)
        state = state_of(routes, program)
        differed = next((at for kind, at in times if kind == _DIFFERED), None)
        # A divergence begins evidence afresh, so that the comparisons before it are not in the totals any more.
        compared = len(times) if found else state.compared + state.unknown + (differed is not None)
        return Life(killed, tuple(at for _, at in times), differed, counted, compared, len(found))
    finally:
        routes.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lives", type=int, default=LIVES)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--differs-after", type=float, default=0.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.differs_after)
        return 0
    draw, lives, problems = random.Random(SEED), [], []
    for number in range(options.lives):
        with tempfile.TemporaryDirectory() as folder:
            life = live_and_die(Path(folder), draw)
        lives.append(life)
        problems += [f"life {number}: {each}" for each in life.problems()]
    requests = sum(len(each.answered) for each in lives)
    found = {
        "source_hash": store_hash(),
        "seed": SEED,
        "lives": len(lives),
        "requests": requests,
        "bound_s": BOUND_SECONDS,
        "longest_loss_of_counts_s": round(max(each.lost_seconds(each.counted) for each in lives), 2),
        "longest_loss_of_comparisons_s": round(max(each.lost_seconds(each.compared) for each in lives), 2),
        "missing_counts": sum(max(0, len(each.answered) - each.counted) for each in lives),
        "differences": sum(each.differed is not None for each in lives),
        "differences_found": sum(each.divergences for each in lives),
        "problems": problems,
    }
    print(found)
    if options.lives >= LIVES:
        write_json(PROOFS / "migration_kill_calls.json", found)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
