"""`make proof-code-memory`: ten thousand nodes are compiled to machine code, run and dropped in one process, whose
memory stays as it is.

The nodes of the repository are taken in turn, each loaded from its document with machine code from the first run on, in
the plain and in the pathed form. After the first rounds, in which caches fill, it is looked at what is in use: blocks
of Python's allocator, bytes of malloc, mappings, memory that can be executed, and machine code by its own count. At the
end each is the same within small limits, and one that is not is named. What is resident is looked at too, but depends
on what the allocators and the kernel keep at hand, however few nodes there were: its limit says something of a whole
run, in which a kibibyte that each node leaves would show. A whole run writes `docs/proofs/code_memory.json`.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.memory import in_use, resident_kib  # noqa: E402  # after the path is set
from tests.proofs.robustness.proof import PROOFS, engine_hash, source_hash, write_json  # noqa: E402
from tests.support.nodes import compiled, worked_nodes  # noqa: E402
from vesper.engines.direct_engine import DirectProgram, all_callees, load_documents, tier_counters  # noqa: E402
from vesper.engines.tiering import ALWAYS  # noqa: E402
from vesper.verify.inputs.responses import NOON  # noqa: E402

NAME = "code_memory"
NODES = 10_000
WARM = 500
LIMITS = {
    "resident_kib_more": 8 * 1024,
    "blocks_more": 2_000,
    "malloc_bytes_more": 256 * 1024,
    "mappings_more": 16,
    "executable_kib_more": 64,
    "code_bytes_more": 0,
}
"""The most that there may be more of each at the end."""
_KEY = bytes(16)


def loads() -> list[Callable[[], DirectProgram]]:
    """Each loads a pure node that has a case, and runs it."""
    found: list[Callable[[], DirectProgram]] = []
    for path in worked_nodes():
        node = compiled(path)
        case = next((each for each in node.cases if not each.effects), None)
        if case is not None and node.node.is_pure():
            documents = [each.ir for each in all_callees(node)]
            found.append(partial(_loaded, node.ir, documents, dict(case.inputs)))
    return found


def _loaded(ir: bytes, callees: list[bytes], given: dict[str, Any]) -> DirectProgram:
    program = load_documents(ir, callees, ALWAYS)
    program.call(given, NOON)
    program.call_pathed(given, _KEY, NOON)
    return program


def mappings() -> tuple[int, int]:
    """How many mappings the process has, and how many KiB it may execute that are of no file: machine code of ours.

    Mappings that touch become one, so that their number alone would not show code that is never given back.
    """
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    executable = 0
    for line in lines:
        where, access, _, _, inode, *_ = line.split()
        if "x" in access and inode == "0":
            first, _, end = where.partition("-")
            executable += int(end, 16) - int(first, 16)
    return len(lines), executable // 1024


def measured(count: int, warm: int = WARM, keep: list[DirectProgram] | None = None) -> dict[str, Any]:
    """Loads and drops so many; what there was before and after. What is in `keep` is not dropped: for a test."""
    making = loads()
    for number in range(warm):
        making[number % len(making)]()
    in_use()
    blocks, allocated = in_use()
    start, (mapped, executable), counters = resident_kib(), mappings(), tier_counters()
    for number in range(count):
        program = making[number % len(making)]()
        if keep is not None:
            keep.append(program)
        del program
        if sys.stderr.isatty() and number % 100 == 0:
            print(f"\r{number:>8,} nodes, {resident_kib()} KiB", end="", file=sys.stderr, flush=True)
    blocks_now, allocated_now = in_use()
    end, (mapped_now, executable_now), after = resident_kib(), mappings(), tier_counters()
    return {
        "nodes": count,
        "compiled_forms": after.compiled - counters.compiled,
        "refused_forms": after.refused - counters.refused,
        "start_kib": start,
        "end_kib": end,
        "resident_kib_more": end - start,
        "blocks_more": blocks_now - blocks,
        "malloc_bytes_more": None if allocated is None or allocated_now is None else allocated_now - allocated,
        "mappings_more": mapped_now - mapped,
        "executable_kib_more": executable_now - executable,
        "code_bytes_more": after.bytes - counters.bytes,
    }


def grown(found: dict[str, Any]) -> list[str]:
    """What there is more of than its limit allows; malloc's bytes only glibc tells."""
    return [name for name, limit in LIMITS.items() if (found[name] or 0) > limit]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=NODES)
    asked = parser.parse_args()
    begun = time.monotonic()
    found = measured(asked.nodes, min(WARM, asked.nodes // 2))
    proof = {
        "source_hash": source_hash(),
        "engine_hash": engine_hash(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        **found,
        "elapsed_seconds": round(time.monotonic() - begun, 1),
    }
    print(json.dumps(proof, indent=2))
    if more := grown(found):
        told = ", ".join(f"{name} {found[name]:,} (at most {LIMITS[name]:,})" for name in more)
        print(f"memory grew while {asked.nodes:,} nodes were compiled and dropped: {told}", file=sys.stderr)
        return 1
    if not found["compiled_forms"]:
        print("no node was compiled to machine code: this machine may refuse memory for it", file=sys.stderr)
        return 1
    if asked.nodes >= NODES:
        write_json(PROOFS / f"{NAME}.json", proof)
    return 0


if __name__ == "__main__":
    sys.exit(main())
