"""`make proof-kernel`: kernel and worker are killed while pipelines run; no step is performed twice, no process lost.

Processes of the founding control flow have steps to run all the time: five agents, a route by a condition, a loop with
an edge limit, two parallel branches, and a person who confirms, at the earliest after the next start of the kernel. The
campaign kills the kernel, the worker or both with SIGKILL at random moments, and starts them again. Each agent writes a
row into a table, so that what was performed can be counted. `amid_steps` counts kills while the worker had a step.

- doubled, missing: rows of stages beyond and below those of the path that the process has to take;
- lost: processes whose acceptance the kernel had confirmed, and that it does not know;
- wrong: processes that did not end, or ended otherwise than they have to.

It is resumable: logs, journal and table stay in `.proofs/kernel` until the campaign has ended.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import PROOFS, STATE, engine_hash, whole_hash, write_json  # noqa: E402
from tests.support.servers import free_port  # noqa: E402
from tests.support.work.kernel import performed, write_project  # noqa: E402
from vesper.kernel import Kernel, KernelError, v1  # noqa: E402
from vesper.kernel.pipelines.file import read_pipeline  # noqa: E402

NAME = "kernel"
SEED = 20_261_119
ACTIVE = 24
"""Processes that have not ended and do not wait for a person while kills go on. Some wait a minute for a lease."""
THREADS = 4
"""Steps that the worker has at a time."""
MAX_EFFECTS = 8
"""A kill comes after a random number of effects below this one, however fast the machine is."""
MAX_WAIT_SECONDS = 15.0
"""When a kill comes without them."""
SETTLE_SECONDS = 300.0
ACTIVE_STATES = ("ready", "running")
START_SECONDS = 120.0
_PATH = {"draft": 2, "review": 2, "legal": 1, "finance": 1}
# Inputs of a process, the answer of the person, the reason of its end, and what is performed.
KINDS: dict[str, tuple[int, bool, str, dict[str, int]]] = {
    "published": (2, True, "COMPLETED", {**_PATH, "publish": 1}),
    "refused": (2, False, "COMPLETED", _PATH),
    "limited": (99, True, "EDGE_LIMIT_EXCEEDED", {"draft": 4, "review": 4}),
}


class Estate:
    """A kernel and a worker with their files, and the processes that were submitted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / "publication.pipeline.yaml"
        if not path.exists():
            write_project(folder)
        self.pipeline = read_pipeline(path).config
        self.kernel = Kernel(f"sqlite:{folder / 'kernel.db'}", port=free_port())
        self.worker: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self._asked_at: dict[str, int] = {}
        self._state = folder / "state.json"
        known = json.loads(self._state.read_text()) if self._state.exists() else {}
        self.kills: Counter[str] = Counter(known.get("kills", {}))
        self.amid_steps: int = known.get("amid_steps", 0)
        """Kills at which the worker had a step."""
        self.kinds: dict[str, str] = known.get("kinds", {})
        """The kind of each request."""
        self.sent: str = known.get("sent", "")
        """The request that was sent and that the kernel has not confirmed yet."""

    def save(self) -> None:
        scratch = self._state.with_suffix(".new")
        names = ("kills", "amid_steps", "kinds", "sent")
        scratch.write_text(json.dumps({name: getattr(self, name) for name in names}))
        scratch.replace(self._state)

    def start_kernel(self) -> None:
        self.kernel.start()
        self.starts += 1

    def start_worker(self) -> None:
        """Start the worker; it finds the kernel when it is ready."""
        command = [sys.executable, "-P", "-m", "vesper", "kernel", "worker", "nodes", "--service", "desk"]
        command += ["--threads", str(THREADS)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        with (self.folder / "worker.log").open("ab") as log:
            self.worker = subprocess.Popen(
                [*command, "--address", self.kernel.address],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def has_worker(self) -> bool:
        """Return true where the kernel has the stream of a worker. A worker that ended by itself is an error."""
        assert self.worker is not None
        if self.worker.poll() is not None:
            log = (self.folder / "worker.log").read_text(encoding="utf-8", errors="replace")
            raise AssertionError(f"the worker ended with {self.worker.returncode}: {log[-2000:]}")
        return any(each.workers for each in self._services())

    def _services(self) -> Sequence[v1.ServiceInfo]:
        return self.kernel.client.list_services(v1.ListServicesRequest()).services

    def kill(self, what: str) -> None:
        """Kill the kernel, the worker or both, and start them again."""
        self.amid_steps += any(each.current_load for each in self._services())
        if what in ("worker", "both"):
            self.end_worker()
        if what in ("kernel", "both"):
            self.kernel.kill()
        self.kills[what] += 1
        if what in ("kernel", "both"):
            self.start_kernel()
        if what in ("worker", "both"):
            self.start_worker()
        self.save()

    def end_worker(self) -> None:
        if self.worker is not None:
            self.worker.send_signal(signal.SIGKILL)
            self.worker.wait()
            self.worker = None

    def submit(self, draws: random.Random) -> None:
        """Submit a process, and note it before and when the kernel has confirmed it."""
        is_repeated, request_id = bool(self.sent), self.sent or f"e{len(self.kinds)}"
        kind = self.kinds.setdefault(request_id, draws.choices(list(KINDS), weights=[3, 1, 1])[0])
        self.sent = request_id
        self.save()
        if not is_repeated or request_id not in self.processes():
            inputs = {"event_id": json.dumps(request_id), "drafts_needed": str(KINDS[kind][0])}
            request = v1.ExecutePipelineRequest(
                process=v1.CreateProcessRequest(request_id=request_id), pipeline=self.pipeline, inputs_json=inputs
            )
            stream = self.kernel.client.execute_pipeline(request)
            next(stream)
            stream.cancel()
        self.sent = ""
        self.save()

    def answer(self) -> int:
        """Let the person answer what was asked before the last start of the kernel; return how much was asked since."""
        waiting = 0
        request = v1.ListInterruptsRequest(status="INTERRUPT_STATUS_PENDING", page_size=1000)
        for each in self.kernel.client.list_interrupts(request).interrupts:
            if self._asked_at.setdefault(each.interrupt_id, self.starts) == self.starts:
                waiting += 1
                continue
            event = each.message.removeprefix("Publish ").removesuffix("?")
            approved = json.dumps({"approved": KINDS[self.kinds[event]][1]})
            response = v1.InterruptResponse(value_json=approved, by="campaign")
            answer = v1.ResolveInterruptRequest(interrupt_id=each.interrupt_id, response=response)
            self.kernel.client.resolve_interrupt(answer)
        return waiting

    def processes(self) -> dict[str, v1.Process]:
        """Return the processes by request."""
        found: dict[str, v1.Process] = {}
        token = ""
        while True:
            page = self.kernel.client.list_processes(v1.ListProcessesRequest(page_size=1000, page_token=token))
            found |= {each.request_id: each for each in page.processes}
            token = page.next_page_token
            if not token:
                return found

    def under_way(self) -> int:
        return sum(1 for each in self.processes().values() if not each.HasField("ended_us"))

    def active(self) -> int:
        counts = self.kernel.client.get_process_counts(v1.GetProcessCountsRequest()).by_state
        return sum(counts[state] for state in ACTIVE_STATES if state in counts)

    def effects(self) -> int:
        with closing(sqlite3.connect(self.folder / "done.db", timeout=30)) as database:
            return int(database.execute("SELECT count(*) FROM done").fetchone()[0])

    def judge(self) -> dict[str, Any]:
        """Compare what was performed and how processes ended with what has to be."""
        found = self.processes()
        doubled: list[str] = []
        missing: list[str] = []
        wrong: list[str] = []
        for request_id, kind in self.kinds.items():
            _, _, reason, expected = KINDS[kind]
            counted = performed(self.folder, request_id)
            doubled += [f"{request_id} {kind}: {counted}"] if counted - Counter(expected) else []
            missing += [f"{request_id} {kind}: {counted}"] if Counter(expected) - counted else []
            process = found.get(request_id)
            if process is not None:
                name = v1.TerminalReason.Name(process.terminal_reason).removeprefix("TERMINAL_REASON_")
                wrong += [f"{request_id} {kind}: {name} {process.terminal_message}"] if name != reason else []
        lost = sorted(set(self.kinds) - set(found) - {self.sent})
        return {"doubled": doubled, "missing": missing, "wrong": wrong, "lost": lost}


@contextmanager
def running(estate: Estate) -> Iterator[None]:
    estate.start_kernel()
    estate.start_worker()
    try:
        yield
    finally:
        estate.end_worker()
        estate.kernel.stop()


def until(seconds: float, what: str, is_so: Any) -> None:
    """Wait for a condition; fail after so long."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"after {seconds:.0f} s {what}")
        time.sleep(0.02)


def run(estate: Estate, kills: int, seed: int) -> dict[str, Any]:
    """Kill until so many kills are done, then let all processes end."""
    with running(estate):
        while estate.kills.total() < kills:
            draws = random.Random(f"{seed} {estate.kills.total()}")
            what = draws.choices(["worker", "kernel", "both"], weights=[4, 4, 2])[0]
            effects, seconds = estate.effects() + draws.randrange(MAX_EFFECTS), MAX_WAIT_SECONDS
            if draws.random() < 0.25:
                seconds = draws.random()  # mostly while the last worker is still starting
            else:
                until(START_SECONDS, "no worker has a stream", estate.has_worker)
            moment, rest = time.monotonic() + seconds, draws.random() / 10
            while time.monotonic() < moment and estate.effects() <= effects:
                estate.answer()
                while estate.active() < ACTIVE:
                    estate.submit(draws)
                time.sleep(0.01)
            time.sleep(rest)
            estate.kill(what)
            show(estate, kills)
        deadline = time.monotonic() + SETTLE_SECONDS
        # What has not ended by then is named by the judgement.
        while estate.under_way() and time.monotonic() < deadline:
            if estate.answer() and not estate.active():
                estate.kernel.kill()
                estate.start_kernel()
            time.sleep(0.1)
        return estate.judge()


def too_thin(estate: Estate) -> list[str]:
    """Return why a campaign shows nothing; a short one may show little."""
    kills, processes = estate.kills.total(), len(estate.kinds)
    problems = [f"{processes} processes under {kills} kills"] if 10 * processes < 3 * kills else []
    return problems + ([f"{estate.amid_steps} of {kills} kills amid a step"] if estate.amid_steps < kills // 4 else [])


def show(estate: Estate, kills: int) -> None:
    done = estate.kills.total()
    bar = "#" * (30 * done // kills)
    sys.stderr.write(f"\r[{bar:<30}] {done} of {kills} kills, {len(estate.kinds)} processes   ")
    sys.stderr.flush()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--folder", type=Path, default=STATE / NAME)
    parser.add_argument("--no-write", action="store_true", help="write no docs/proofs/kernel.json")
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    estate = Estate(given.folder)
    try:
        found = run(estate, given.kills, given.seed)
    except KernelError as error:
        print(f"\nerror: the kernel refused: {error}", file=sys.stderr)
        return 1
    counts = {name: len(each) for name, each in found.items()}
    by_kind = dict(Counter(estate.kinds.values()))
    summary = {"kills": dict(estate.kills), "amid_steps": estate.amid_steps, "processes": by_kind}
    summary |= {"effects": estate.effects(), **counts}
    print(f"\n{json.dumps(summary)}")
    for name, each in found.items():
        for line in each:
            print(f"error: {name}: {line}", file=sys.stderr)
    for line in too_thin(estate):
        print(f"error: too little to show anything: {line}", file=sys.stderr)
    if any(counts.values()) or too_thin(estate):
        return 1
    if not given.no_write:
        write_json(
            PROOFS / f"{NAME}.json", {**summary, "seed": given.seed, "sources": whole_hash(), "engine": engine_hash()}
        )
    shutil.rmtree(given.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
