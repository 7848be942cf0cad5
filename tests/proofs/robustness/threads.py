"""`make proof-threads`: eight threads make a million calls each of the same loaded nodes, and all see the same.

What a thread sees is hashed, call by call; one thread alone makes the hash that the others must come to. The same
calls, fewer of them, are made by threads that asyncio starts and by processes that were forked while threads were at
work. Some calls run long enough to let go of Python's lock, so that the engine runs on several cores at once.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import platform
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.calls import KINDS, LONG, shown  # noqa: E402  # after the path is set
from tests.proofs.robustness.proof import PROOFS, engine_hash, source_hash, write_json  # noqa: E402

NAME = "threads"
THREADS = 8
CALLS = 1_000_000
PARTS = 20
"""Of the calls of a thread, one in so many is made again by each task of asyncio and each forked process."""
LONG_EVERY = 5_000
PLAN = tuple(kind for kind in KINDS for _ in range(kind.share))


def digest(calls: int) -> str:
    """The hash of what so many calls come to, in the one order there is."""
    found = hashlib.sha256()
    for number in range(calls):
        found.update(shown(PLAN[number * 37 % 100].make(number)))
        if number % LONG_EVERY == 0:
            found.update(shown(LONG.call({"n": 100, "m": 100 + number % 7})))
    return found.hexdigest()


def in_threads(calls: int) -> list[str]:
    ready = threading.Barrier(THREADS)

    def work(_: int) -> str:
        ready.wait()
        return digest(calls)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, range(THREADS)))


def under_asyncio(calls: int) -> list[str]:
    """In threads of asyncio's own, while the loop itself makes the same calls between its turns."""

    async def main() -> list[str]:
        tasks = [asyncio.create_task(asyncio.to_thread(digest, calls)) for _ in range(THREADS)]
        await asyncio.sleep(0)
        return [digest(calls), *await asyncio.gather(*tasks)]

    return asyncio.run(main())


def in_forks(calls: int) -> list[str]:
    """In processes that are forked one after the other while a thread makes calls."""
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            digest(100)

    other = threading.Thread(target=work)
    other.start()
    try:
        pipes = []
        for _ in range(THREADS // 2):
            reader, writer = os.pipe()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # that there are threads is the point
                child = os.fork()
            if child == 0:
                try:
                    os.write(writer, digest(calls).encode())
                finally:
                    os._exit(0)
            os.close(writer)
            pipes.append((child, reader))
    finally:
        is_over.set()
        other.join()
    found = []
    for child, reader in pipes:
        with os.fdopen(reader, "rb") as end:
            found.append(end.read().decode() or f"process {child} wrote nothing")
        os.waitpid(child, 0)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=CALLS, help="of each thread")
    calls: int = parser.parse_args().calls
    sources = {"source_hash": source_hash(), "engine_hash": engine_hash()}
    begun = time.monotonic()
    few = calls // PARTS
    expected, expected_of_few = digest(calls), digest(few)
    seen = {"threads": in_threads(calls), "asyncio": under_asyncio(few), "forks": in_forks(few)}
    proof = {
        **sources,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": THREADS,
        "calls_each": calls,
        "calls_each_under_asyncio_and_after_fork": few,
        "digest_of_one_thread": expected,
        "digest_of_few": expected_of_few,
        "as_expected": {
            where: sum(each == (expected if where == "threads" else expected_of_few) for each in found)
            for where, found in seen.items()
        },
        "of": {where: len(found) for where, found in seen.items()},
        "elapsed_seconds": round(time.monotonic() - begun, 1),
    }
    print(json.dumps(proof, indent=2))
    if proof["as_expected"] != proof["of"]:
        print(f"not all came to the same: {json.dumps(seen, indent=2)}", file=sys.stderr)
        return 1
    if calls >= CALLS:
        write_json(PROOFS / f"{NAME}.json", proof)
    return 0


if __name__ == "__main__":
    sys.exit(main())
