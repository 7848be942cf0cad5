"""`make proof-memory`: ten million calls of the Rust engine in one process, whose memory stays as it is.

Every kind of `calls.py` takes its share of every round. After the first rounds, in which caches and free lists fill,
what is in use is counted, in blocks of Python's allocator and bytes of the system's, and may not be more at the end but
for a small limit. The resident memory is looked at too, once a round: after all calls it may be half a mebibyte larger
than it was, a twentieth of a byte for each call. It moves by more than a few calls could leave behind, as the
allocators keep pages at hand or give them back: in a shorter run its limit is wider. That no call leaves a ring of
objects behind, which only Python's collector would find, is tested by `test_garbage.py`. A whole run writes
`docs/proofs/memory.json`, one of fewer calls only prints.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.calls import KINDS, Kind, shown  # noqa: E402  # after the path is set
from tests.proofs.robustness.proof import PROOFS, engine_hash, source_hash, write_json  # noqa: E402

NAME = "memory"
CALLS = 10_000_000
A_ROUND = 10_000
WARM_ROUNDS = 20
LIMIT_KIB = 512
LIMIT_KIB_OF_A_SAMPLE = 8 * 1024
LIMIT_BLOCKS = 1_000
LIMIT_MALLOC_BYTES = 64 * 1024


_STATM = Path("/proc/self/statm")
"""Made once: a path interns its parts, and Python's table of interned strings grows, by half a MiB, when it has seen
enough of them come and go. What measures must not be what is measured."""


def resident_kib() -> int:
    """What of this process is in memory now; the peak that `getrusage` gives would hide what was given back."""
    pages = int(_STATM.read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


_FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _MallocInfo(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _FIELDS)


def in_use() -> tuple[int, int | None]:
    """Blocks of Python's allocator and bytes of malloc, which Rust takes its memory from; these only glibc tells."""
    gc.collect()
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return sys.getallocatedblocks(), None
    ask.restype = _MallocInfo
    told = ask()
    return sys.getallocatedblocks(), int(told.uordblks + told.hblkhd)


def one_round(first: int, kinds: tuple[Kind, ...] = KINDS) -> None:
    for kind in kinds:
        make = kind.make
        for number in range(first, first + A_ROUND * kind.share // 100):
            make(number)


def measured(calls: int, kinds: tuple[Kind, ...] = KINDS) -> dict[str, Any]:
    """Make the calls; the memory before, after each tenth of them and after all, and the most there was."""
    for kind in kinds:
        for number in range(64):
            shown(kind.make(number))  # fails where a call comes to what it should not
    for number in range(WARM_ROUNDS):
        one_round(number, kinds)
    in_use()  # once before it counts: what it needs itself is then there
    blocks, allocated = in_use()
    start = most = resident_kib()
    rounds = calls // A_ROUND
    tenths = []
    for number in range(rounds):
        one_round(number, kinds)
        most = max(most, resident_kib())
        if (number + 1) * 10 // rounds > number * 10 // rounds:
            tenths.append(resident_kib())
        if sys.stderr.isatty():
            print(f"\r{(number + 1) * A_ROUND:>12,} calls, {resident_kib()} KiB", end="", file=sys.stderr, flush=True)
    end = resident_kib()
    blocks_now, allocated_now = in_use()
    return {
        "calls": calls,
        "start_kib": start,
        "after_each_tenth_kib": tenths,
        "end_kib": end,
        "most_kib": most,
        "blocks_more": blocks_now - blocks,
        "malloc_bytes_more": None if allocated is None or allocated_now is None else allocated_now - allocated,
    }


def limit_kib(calls: int) -> int:
    """How much more may be resident after so many calls."""
    return LIMIT_KIB if calls >= CALLS else LIMIT_KIB_OF_A_SAMPLE


def has_grown(memory: dict[str, Any]) -> bool:
    return (
        memory["end_kib"] - memory["start_kib"] > limit_kib(memory["calls"])
        or memory["blocks_more"] > LIMIT_BLOCKS
        or (memory["malloc_bytes_more"] or 0) > LIMIT_MALLOC_BYTES
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=CALLS)
    calls = parser.parse_args().calls // A_ROUND * A_ROUND
    sources = {"source_hash": source_hash(), "engine_hash": engine_hash()}
    begun = time.monotonic()
    memory = measured(calls)
    proof = {
        **sources,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "of_each_kind": {kind.name: calls // 100 * kind.share for kind in KINDS},
        **memory,
        "limit_kib_more": limit_kib(calls),
        "elapsed_seconds": round(time.monotonic() - begun, 1),
    }
    print(json.dumps(proof, indent=2))
    if has_grown(memory):
        print("memory grew: call the kinds alone, with `measured`, to see which of them keeps it", file=sys.stderr)
        return 1
    if calls >= CALLS:
        write_json(PROOFS / f"{NAME}.json", proof)
    return 0


if __name__ == "__main__":
    sys.exit(main())
