"""Losses of power: what was written and not synced is gone, of the journal and of the shop's database.

`unsynced.c` stands before libc in the processes that run purchases and keeps what each file held at its last sync. A
process dies at a point, its files are replaced by what was kept, and another process recovers from that. The control
runs on a disk that lies about syncing, and must lose something.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.proofs.kills.purchase import OutsideProcess

ROOT = Path(__file__).parents[3]
CONTROL = 10


def lose_power(folder: Path, outside: OutsideProcess, losses: int, seed: int) -> dict[str, Any]:
    """So many losses of power, and the control."""
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "unsynced.so"
    source = ROOT / "tests" / "proofs" / "kills" / "unsynced.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    honest = _campaign(folder / "honest", library, outside.port, losses, seed, lies=False)
    lying = _campaign(folder / "lying", library, outside.port, CONTROL, seed, lies=True)
    return {
        "losses": honest["losses"],
        "unheard_of_and_run_again": honest["unheard"],
        "in_doubt": honest["in_doubt"],
        "lost_or_doubled": len(honest["problems"]),
        "problems": honest["problems"],
        "control_losses": lying["losses"],
        "control_lost": len(lying["problems"]),
    }


def _campaign(folder: Path, library: Path, port: int, losses: int, seed: int, lies: bool) -> dict[str, Any]:
    """Runs in a process of its own, for `LD_PRELOAD` is for a whole process and its children."""
    disk, synced = folder / "disk", folder / "synced"
    disk.mkdir(parents=True)
    synced.mkdir()
    environment = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "VESPER_WATCHED": str(disk.resolve()),
        "VESPER_SYNCED": str(synced.resolve()),
    }
    if lies:
        environment["VESPER_SYNC_LIES"] = "1"
    command = [sys.executable, "-m", "tests.proofs.kills.power", str(disk.resolve()), str(synced.resolve()), str(port)]
    done = subprocess.run(
        [*command, str(losses), str(seed), "lying" if lies else "honest"],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True, text=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def restore(disk: Path, synced: Path) -> None:
    """What is on the disk when the power is back: of every file what it held at its last sync, or nothing."""
    for path in disk.iterdir():
        path.unlink()
    for path in synced.iterdir():
        if path.suffix == ".new":
            path.unlink()  # the power went while it was being synced
        elif not path.name.endswith("-shm"):
            shutil.copyfile(path, disk / path.name)


def main() -> None:
    from tests.proofs.kills import campaign, purchase

    disk, synced, port, losses, seed, kind = sys.argv[1:]
    folder, kept = Path(disk), Path(synced)
    place = purchase.sqlite_place(folder, int(port))
    if kind == "lying":  # at least the empty databases are there
        for path in folder.iterdir():
            if not path.name.endswith("-shm"):
                shutil.copyfile(path, kept / path.name)
    outside = purchase.OutsideAt(int(port))
    compiled = purchase.purchase()
    draw = random.Random(int(seed))
    problems: list[str] = []
    doubts = unheard = lost = 0
    for number in range(int(losses)):
        first, second = campaign.HANDOFFS[number % len(campaign.HANDOFFS)]
        point = campaign.RANDOM if draw.random() < 0.25 else draw.choice(campaign.POINTS)
        event = f"{kind}-{number}"
        pid = os.fork()
        if pid == 0:
            if point != campaign.RANDOM:
                purchase.arm(point)
            purchase.run_purchase(place, compiled, first, event)
            os._exit(0)
        if point == campaign.RANDOM:
            time.sleep(draw.random() * 0.15)
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        lost += os.WIFSIGNALED(status)
        restore(folder, kept)
        before = outside.counts()
        status, said = purchase.in_child(lambda second=second: purchase.recover_all(place, second, outside))  # type: ignore[misc]
        if status != 0:
            problems.append(f"{event}, {point}: recovery failed")
            continue
        doubts += event in said["doubts"]
        if not purchase.is_heard_of(place, outside, event):
            unheard += 1
            if before[f"/charge {event}"] or before[f"/notice {event}"]:
                problems.append(f"{event}, {point}: something was done, and nobody knows of it")
                continue
            status, _ = purchase.in_child(
                lambda second=second, event=event: purchase.run_purchase(place, compiled, second, event)  # type: ignore[misc]
            )
            if status != 0:
                problems.append(f"{event}, {point}: could not be run again")
        problems += [f"{event}, {point}, {first} to {second}: {each}" for each in purchase.wrong(place, outside, event)]
    print(json.dumps({"losses": lost, "problems": problems, "in_doubt": doubts, "unheard": unheard}))


if __name__ == "__main__":
    main()
