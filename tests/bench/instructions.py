"""`make bench-instructions`: how many instructions a call takes, counted by callgrind.

Counts hardly change from run to run, however busy the machine is: they are what a regression is noticed by. Those of
docs/benchmarks/instructions.json are compared; one that is more than 3 % higher fails. Counts of another architecture
or another version of Python are not compared, and that is said. `--update` writes the new ones.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import write_json  # noqa: E402  # after the path is set

FILE = ROOT / "docs" / "benchmarks" / "instructions.json"
MOST_WORSE = 0.03
TURNS = {"W1": 10, "W2": 10, "W3": 2}
"""How often the inputs of a workload are gone through."""
_TRIGGER = re.compile(r"^desc: Trigger: Client Request: (.+)$", re.MULTILINE)
_TOTALS = re.compile(r"^(?:totals|summary): ([0-9]+)", re.MULTILINE)


class Unusable(Exception):
    """Nothing can be counted here; the message says what to do."""


# -- in the process that is counted ---------------------------------------------------------------


def child() -> None:
    import vesper
    from tests.bench import ours
    from tests.bench.workloads import W1, WORKLOADS
    from vesper.engines.registry import ENGINES

    ways: dict[str, tuple[Any, list[Any], int]] = {}
    for title, workload in WORKLOADS.items():
        nothing = (lambda _: None, workload.inputs, TURNS[title])
        ways[f"{title} nothing"] = nothing
        ways[f"{title} plain"] = (workload.reference, workload.inputs, TURNS[title])
        for engine in ENGINES:
            ways[f"{title} {engine}"] = (vesper.load(workload.file, engine=engine).call, workload.inputs, TURNS[title])
    ways["W1 nothing json"] = (lambda _: None, ours.requests_of(W1), TURNS["W1"])
    ways["W1 run_json"] = (ours.run_json(W1), ours.requests_of(W1), TURNS["W1"])
    count(ways)


def count(ways: Mapping[str, tuple[Callable[[Any], Any], list[Any], int]]) -> None:
    """Goes through each way so often, for callgrind to count."""
    from tests.bench.peers.built import in_c

    marks: Any = in_c("../marks.c", "marks")
    for call, inputs, _ in ways.values():
        until = time.monotonic() + 0.5  # what compiles itself while it runs has done so then
        while time.monotonic() < until:
            for each in inputs:
                call(each)
    for name, (call, inputs, turns) in ways.items():
        marks.begin()
        for _ in range(turns):
            for each in inputs:
                call(each)
        marks.end(f"{name}={turns * len(inputs)}")


# -- around it ------------------------------------------------------------------------------------


def counted(script: str = __file__, *asked: str, **variables: str) -> dict[str, float]:
    """Instructions a call, by workload and way, of a script that is run with `--child`. Raises `Unusable`."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise Unusable("no valgrind here (Debian: apt-get install valgrind)")
    with tempfile.TemporaryDirectory() as folder:
        command = [valgrind, "--quiet", "--tool=callgrind", "--instr-atstart=no", "--smc-check=all-non-file"]
        command += [f"--callgrind-out-file={folder}/out", sys.executable, script, "--child", *asked]
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0", "HOME": folder}
        environment["VESPER_JIT"] = "always"  # machine code is there from the start, and nobody makes it meanwhile
        environment |= variables
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise Unusable(f"the process that is counted ended with {ran.returncode}:\n{ran.stderr.strip()[-2000:]}")
        return a_call(each.read_text(encoding="utf-8") for each in sorted(Path(folder).glob("out.*")))


def a_call(dumps: Iterable[str]) -> dict[str, float]:
    """From what callgrind wrote: a call's instructions, without those of the loop around it."""
    totals: dict[str, float] = {}
    for text in dumps:
        trigger, summed = _TRIGGER.search(text), _TOTALS.search(text)
        if trigger is None or summed is None or "=" not in trigger[1]:
            continue
        name, _, calls = trigger[1].rpartition("=")
        totals[name] = int(summed[1]) / int(calls)
    found = {}
    for name, total in sorted(totals.items()):
        title, _, way = name.partition(" ")
        if not way.startswith("nothing"):
            found[name] = round(total - totals[f"{title} nothing json" if way == "run_json" else f"{title} nothing"], 1)
    return found


def compared(known: Mapping[str, float], found: Mapping[str, float]) -> tuple[list[str], list[str]]:
    """Lines of a table, and what is worse than it may be; a way that is gone is worse too."""
    lines, worse = [], []
    for name in sorted({*known, *found}):
        before, now = known.get(name), found.get(name)
        if now is None:
            worse.append(f"{name}: it was counted before, and is not there any more")
        elif before is None:
            lines.append(f"{name:<16} {now:14,.0f}   new")
        else:
            change = now / before - 1
            lines.append(f"{name:<16} {now:14,.0f}   {change:+.1%} of {before:,.0f}")
            # Plain Python is there to compare with: it is the interpreter's, not ours.
            if change > MOST_WORSE and not name.endswith(" plain"):
                worse.append(
                    f"{name}: {now:,.0f} instructions a call, {change:+.1%} of the {before:,.0f} that are known"
                )
    return lines, worse


def here() -> dict[str, str]:
    return {"architecture": platform.machine(), "python": platform.python_version()}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--update", action="store_true", help="write the counts instead of comparing them")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        child()
        return 0
    try:
        found = counted()
    except Unusable as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    document: dict[str, Any] = {"where": here(), "instructions": {}}
    if FILE.is_file():
        document = json.loads(FILE.read_text(encoding="utf-8"))
    known = document["instructions"]
    is_comparable = document["where"] == here()
    lines, worse = compared(known if is_comparable else {}, found)
    print(f"instructions a call; {here()['architecture']}, Python {here()['python']}")
    print("\n".join(lines))
    if asked.update:
        FILE.parent.mkdir(parents=True, exist_ok=True)
        write_json(FILE, {"where": here(), "instructions": found})
        return 0
    if not is_comparable:
        print(f"NOT COMPARED: the known counts are of {document['where']}", file=sys.stderr)
        return 0
    for each in worse:
        print(f"error: {each}", file=sys.stderr)
    if worse:
        print("a change that is worth it is written down with `make bench-instructions UPDATE=1`", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
