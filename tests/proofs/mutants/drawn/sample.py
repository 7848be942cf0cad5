"""`make sample-mutants`: draw mutants of one small crate, weave them, and let the compiler judge.

    python -m tests.proofs.mutants.drawn.sample [--seed SEED]

It shows in a minute that drawing and weaving fit the sources. Without a seed the date decides, so that every run of
continuous integration draws others.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from tests.proofs.faults.weave import RUNTIME
from tests.proofs.mutants.drawn.draw import draw
from tests.proofs.mutants.drawn.weaving import refused_mutants, weave_mutants
from tests.proofs.robustness.proof import STATE

CRATE = "vesper-kernels"
COUNT = 60
MAX_ROUNDS = 6
MAX_DROPPED = 0.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=datetime.now(UTC).toordinal())
    seed = parser.parse_args().seed
    mutants = draw(RUNTIME / "crates", seed)[0][CRATE][:COUNT]
    dropped: set[str] = set()
    for number in range(1, MAX_ROUNDS + 1):
        copy = weave_mutants(mutants, dropped, STATE / "mutants" / "sample")
        check = ["cargo", "check", "--quiet", "--locked", "--package", CRATE, "--manifest-path", str(copy.manifest)]
        refused, is_built = refused_mutants(copy, [*check, "--target-dir", str(RUNTIME / "target")])
        dropped |= refused
        if is_built:
            print(f"seed {seed}: {COUNT - len(dropped)} of {COUNT} mutants of {CRATE} compile, after {number} rounds")
            return 0 if len(dropped) <= MAX_DROPPED * COUNT else 1
    print(f"seed {seed}: the copy does not compile without {sorted(dropped)}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
