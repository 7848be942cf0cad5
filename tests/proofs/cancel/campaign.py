"""`make proof-cancel`: a run that is cancelled closes its connections within 500 ms, and performs nothing more.

200 trials of agents, one for each of five causes (the caller closes the iterator, the client of `vesper serve` goes, a
budget is used up, the caller's time is over, a calling agent's task is cancelled) at each of five moments (before the
first chunk, between two, in a tool, while a retry waits, while a limit holds a question back), at a random time of the
moment. The servers note when each exchange ends. After the cause

- each exchange that was open ends within 500 ms, and no request follows, though retry and limit would be over;
- the caller has its outcome within 500 ms, where the cause is to end the run;
- in the journal each run has ended, and each INTENT has its result;
- at the end no budget holds anything.

Controls, which nothing cancels, must be noticed. It is resumable: trials that were right are not repeated.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import shutil
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

import vesper  # noqa: E402  # after the path is set
from tests.proofs.cancel.estate import CAUSES, KEY, MOMENTS, Trial, trials, write_estate  # noqa: E402
from tests.proofs.cancel.provider import Provider  # noqa: E402
from tests.proofs.robustness.proof import PROOFS, STATE, engine_hash, read_json, whole_hash, write_json  # noqa: E402
from tests.support.serving import Serving  # noqa: E402
from vesper.config.locate import config_for  # noqa: E402
from vesper.host.host import Host  # noqa: E402
from vesper.journal.entry import Kind  # noqa: E402
from vesper.journal.journal import Status  # noqa: E402

NAME = "cancel"
COUNT, AT_ONCE, SEED = 200, 6, 20_261_119
LIMIT_SECONDS = 0.5
SPREAD_SECONDS = 0.5
"""Time of a moment in which the run is cancelled."""
LEAD_SECONDS = 0.4
"""Time in which a run reaches its moment, where the time of its caller is limited."""
WATCH_SECONDS = 2.6
"""Time after which a retry or a limit would have let the next request out."""
REACH_SECONDS = 30.0
_NOTHING = ("0", 0, 0, 0)
_ENDING = ("close", "client", "timeout", "parent")
"""Causes that are to end the run; a budget ends its requests."""


@dataclass
class Place:
    provider: Provider
    host: Host
    server: Serving | None
    nodes: dict[str, vesper.Node]
    """By trial. They are loaded before the first trial: compiling holds the loop up."""


@dataclass
class Cancelled:
    """The time of the cause, and that at which the caller had its outcome."""

    at: float
    ended: float


# -- causes ---------------------------------------------------------------------------------------


async def _read(stream: Any) -> None:
    async for _ in stream:
        pass


async def close(place: Place, trial: Trial, moment: Moment) -> Cancelled:
    stream = place.nodes[trial.name].stream(question=trial.name)
    reader = asyncio.create_task(_read(stream))
    await moment.wait()
    at = time.monotonic()
    reader.cancel()
    await stream.aclose()
    return Cancelled(at, time.monotonic())


async def client(place: Place, trial: Trial, moment: Moment) -> Cancelled:
    assert place.server is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", place.server.port)
    body = json.dumps({"question": trial.name})
    writer.write(
        f"POST /nodes/{trial.node} HTTP/1.1\r\nHost: loopback\r\nContent-Type: application/json\r\n"
        f"Accept: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    head = await reader.readline()
    if b" 200 " not in head:
        raise RuntimeError(f"{trial}: {head!r} {await reader.read(2000)!r}")
    await moment.wait()
    at = time.monotonic()
    writer.close()
    return Cancelled(at, await _ended_in_journal(place, trial))


async def budget(place: Place, trial: Trial, moment: Moment) -> Cancelled:
    seconds = 0.1 + moment.seconds
    is_counted = trial.moment in ("retry", "limiter")
    with vesper.budget(calls=1) if is_counted else vesper.budget(time=seconds):
        run = asyncio.create_task(place.nodes[trial.name].arun(question=trial.name))
    reached = await moment.reach()
    await run
    return Cancelled(reached if is_counted else reached + seconds, time.monotonic())


async def timeout(place: Place, trial: Trial, moment: Moment) -> Cancelled:
    at = time.monotonic() + LEAD_SECONDS + moment.seconds
    with vesper.run_context(deadline=at):
        stream = place.nodes[trial.name].stream(question=trial.name)
        await _read(stream)
    return Cancelled(at, time.monotonic())


async def parent(place: Place, trial: Trial, moment: Moment) -> Cancelled:
    run = asyncio.create_task(place.nodes[trial.name].arun(question=trial.name))
    await moment.wait()
    at = time.monotonic()
    run.cancel()
    with suppress(asyncio.CancelledError):
        await run
    return Cancelled(at, await _ended_in_journal(place, trial))


async def _ended_in_journal(place: Place, trial: Trial) -> float:
    """Wait until the run has ended in the journal, or longer than it may."""
    until = time.monotonic() + LIMIT_SECONDS + WATCH_SECONDS
    while time.monotonic() < until:
        found = place.host.journal.find(node=trial.node)
        if found and all(each.status is Status.ENDED for each in found):
            break
        await asyncio.sleep(0.01)
    return time.monotonic()


async def nothing(place: Place, trial: Trial, moment: Moment) -> Cancelled:
    """The control: a run that nothing cancels at the time that is noted."""
    stream = place.nodes[trial.name].stream(question=trial.name)
    reader = asyncio.create_task(_read(stream))
    await moment.wait()
    at = time.monotonic()
    await asyncio.sleep(WATCH_SECONDS)
    ended = time.monotonic()
    reader.cancel()
    await stream.aclose()
    return Cancelled(at, ended)


_CAUSES: dict[str, Callable[[Place, Trial, Moment], Any]] = {
    "close": close, "client": client, "budget": budget, "timeout": timeout, "parent": parent,
}  # fmt: skip


class Moment:
    """The moment of a trial, and the random time in it at which the run is cancelled."""

    def __init__(self, provider: Provider, trial: Trial, seconds: float) -> None:
        self.seconds = seconds
        self._loop, self._future = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
        self.is_reached = False
        provider.when_reached(trial.name, self._note)

    def _note(self) -> None:
        self.is_reached = True
        now = time.monotonic()
        self._loop.call_soon_threadsafe(self._future.set_result, now)

    async def reach(self) -> float:
        found: float = await asyncio.wait_for(asyncio.shield(self._future), REACH_SECONDS)
        return found

    async def wait(self) -> None:
        await self.reach()
        await asyncio.sleep(self.seconds)


# -- the judgement --------------------------------------------------------------------------------


async def run_trial(
    place: Place, trial: Trial, seed: int, cause: Callable[[Place, Trial, Moment], Any] | None = None
) -> dict[str, Any]:
    """Run a trial and return its times and problems."""
    draw = random.Random(seed * 1_000_003 + trial.number)
    moment = Moment(place.provider, trial, draw.uniform(0, SPREAD_SECONDS))
    cancelled: Cancelled = await (cause or _CAUSES[trial.cause])(place, trial, moment)
    await asyncio.sleep(max(0.0, cancelled.at + WATCH_SECONDS - time.monotonic()))
    exchanges = place.provider.exchanges[trial.name]
    now = time.monotonic()
    open_ms = [((each.ended or now) - cancelled.at) * 1000 for each in exchanges]
    closed_ms, ended_ms = max([0.0, *open_ms]), (cancelled.ended - cancelled.at) * 1000
    problems = [f"{each.path} after the cause" for each in exchanges if each.came > cancelled.at]
    problems += [f"{each.path} is open" for each in exchanges if each.ended is None]
    if closed_ms > LIMIT_SECONDS * 1000:
        problems.append(f"an exchange ended {closed_ms:.0f} ms after the cause")
    if trial.cause in _ENDING and ended_ms > LIMIT_SECONDS * 1000:
        problems.append(f"the caller had its outcome {ended_ms:.0f} ms after the cause")
    if not moment.is_reached or not exchanges:
        problems.append("the moment was not reached")
    problems += journal_problems(place, trial)
    return {
        "cause": trial.cause, "moment": trial.moment, "closed_ms": round(closed_ms, 1),
        "ended_ms": round(ended_ms, 1), "problems": problems,
    }  # fmt: skip


def journal_problems(place: Place, trial: Trial) -> list[str]:
    """Return the runs that have not ended, and the INTENTs without result."""
    found = place.host.journal.find(node=trial.node)
    problems = [f"{each.execution} is {each.status}" for each in found if each.status is not Status.ENDED]
    for each in found:
        entries = [stored.entry for stored in place.host.journal.read(each.execution).entries]
        intended = {entry.path for entry in entries if entry.kind is Kind.INTENT}
        settled = {entry.path for entry in entries if entry.kind in (Kind.RESULT, Kind.FAILED)}
        problems += [f"{path} of {each.execution} is in doubt" for path in sorted(intended - settled)]
    return problems if found else ["the journal has no run"]


# -- the campaign ---------------------------------------------------------------------------------


@asynccontextmanager
async def opened(folder: Path, some: list[Trial]) -> AsyncIterator[Place]:
    """Start the servers, `vesper serve` where a trial needs it, and a Host on the same journal."""
    os.environ["VESPER_SECRET_MODEL_KEY"] = KEY
    with ExitStack() as stack:
        provider = stack.enter_context(Provider())
        config = write_estate(folder, provider.port, some)
        host = stack.enter_context(Host(config_for(explicit=config)))
        server = None
        if any(each.cause == "client" for each in some):
            command = [sys.executable, "-m", "vesper", "serve", "nodes", "--port", "{port}"]
            server = stack.enter_context(Serving(command, "/livez", folder))
        nodes = {each.name: load(folder, each, host) for each in some if each.cause != "client"}
        yield Place(provider, host, server, nodes)


def load(folder: Path, trial: Trial, host: Host) -> vesper.Node:
    """Load the node of a trial, on both engines in turn."""
    engine = ("python", "interp")[trial.number // len(CAUSES) % 2]
    return vesper.load(folder / "nodes" / f"{trial.node}.vsp", host=host, engine=engine)


async def run(
    folder: Path, some: list[Trial], seed: int, note: Callable[[Trial, dict[str, Any]], None]
) -> tuple[str, int, int, int]:
    """Run trials, some at once; return what budgets hold at the end."""
    async with opened(folder, some) as place:
        free = asyncio.Semaphore(AT_ONCE)

        async def one(trial: Trial) -> None:
            async with free:
                note(trial, await run_trial(place, trial, seed))

        await asyncio.gather(*map(one, some))
        ((_, reserved, *_),) = place.host.budgets.read(["named/everything"])
        return reserved


async def run_controls(folder: Path, seed: int) -> int:
    """Return the number of controls that were noticed."""
    some = [Trial(1000 + number, "close", moment) for number, moment in enumerate(MOMENTS)]
    async with opened(folder, some) as place:
        found = await asyncio.gather(*(run_trial(place, each, seed, nothing) for each in some))
        return sum(bool(each["problems"]) for each in found)


def summary(known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the times by cause, and the trials that were wrong."""
    by_cause = {
        cause: sorted(each["closed_ms"] for each in known.values() if each["cause"] == cause) for cause in CAUSES
    }
    return {
        "trials": len(known),
        "right": sum(not each["problems"] for each in known.values()),
        "closed_ms": {
            cause: {"median": statistics.median(times), "most": times[-1]} for cause, times in by_cause.items() if times
        },
        "moments": {moment: sum(each["moment"] == moment for each in known.values()) for moment in MOMENTS},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--only", nargs="+", choices=[*CAUSES, *MOMENTS], help="trials of these causes and moments")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--folder", type=Path, default=STATE / NAME)
    parser.add_argument("--no-write", action="store_true", help="write no docs/proofs/cancel.json")
    given = parser.parse_args()
    logging.getLogger("vesper").setLevel(logging.ERROR)
    sources = {"sources": whole_hash(), "engine": engine_hash(), "seed": given.seed}
    folder: Path = given.folder.resolve()
    state = folder / "state.json"
    known: dict[str, Any] = read_json(state) or {}
    if any(known.get(name) != value for name, value in sources.items()):
        known = {**sources, "found": {}}
    found: dict[str, dict[str, Any]] = known["found"]

    def note(trial: Trial, result: dict[str, Any]) -> None:
        if result["problems"]:
            print(f"\n{trial}: {result}", flush=True)
        found[str(trial.number)] = result
        write_json(state, known)
        sys.stderr.write(f"\r{len(found)} trials   ")

    some = [
        each for each in trials(given.count) if str(each.number) not in found or found[str(each.number)]["problems"]
    ]
    if given.only:
        some = [each for each in some if each.cause in given.only or each.moment in given.only]
    began = time.monotonic()
    shutil.rmtree(folder / "estate", ignore_errors=True)
    reserved = asyncio.run(run(folder / "estate", some, given.seed, note)) if some else _NOTHING
    noticed = asyncio.run(run_controls(folder / "controls", given.seed))
    proof = {
        **sources, **summary(found), "reserved_at_the_end": list(reserved), "controls": len(MOMENTS),
        "controls_noticed": noticed, "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    print("\n" + json.dumps(proof, indent=2))
    is_right = proof["right"] == proof["trials"] and reserved == _NOTHING and noticed == len(MOMENTS)
    if is_right and proof["trials"] >= COUNT and not given.no_write:
        write_json(PROOFS / f"{NAME}.json", proof)
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
