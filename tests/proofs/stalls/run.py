"""`make proof-stalls`: a kernel that sleeps for 30 seconds stalls no other thread.

The sleep is planted in a copy of the Rust engine (`sleep.toml`), which is built beside a copy of the package. Each
situation has a process of its own, with default settings: the direct engine follows a node without effects (called
through the fast entry, and for its outcome), follows a run with effects, and serves a run with effects. A thread that
wakes every millisecond measures the longest stall. A control holds the GIL for 200 ms, and must be found out.

The machine delays threads too: the same thread in a second process, which does nothing else, is measured beside each.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
WORK = ROOT / ".proofs" / "stalls"
PACKAGE = WORK / "package"
BAR_SECONDS = 0.05
SLEEP_SECONDS = 30
_ATTEMPTS = 3
FAULT = "text.upper_sleeps"
SITUATIONS = ("follows a call", "follows an outcome", "follows a run with effects", "runs with effects", "control")

PURE = """\
node_id: shouted_v1
type: function
intent: Shout
inputs: {word: string}
outputs:
  success: {loud: string}
flow:
  - {step: loud, operation: compute, value: upper(word)}
  - {operation: return, success: [loud]}
"""
EFFECTS = """\
node_id: shouted_file_v1
type: event_handler
intent: Keep a word in a file and shout it
inputs: {event_id: string, word: string}
outputs:
  success: {loud: string}
flow:
  - {step: kept, operation: file, action: write, root: words, path: word.txt, content: word}
  - {step: loud, operation: compute, value: upper(word)}
  - {operation: return, success: [loud]}
security:
  capabilities_required: [filesystem.write.words]
"""
SETTINGS = """\
[files.words]
path = "words"
[[grants]]
nodes = ["shouted_file"]
allow = ["filesystem.write.words"]
"""


def build() -> None:
    """Build the extension with the sleep in it, in a copy of the package."""
    from tests.proofs.faults.weave import weave

    target = WORK / "target"
    command = ["cargo", "build", "--quiet", "--locked", "--profile", "quick", "--package", "vesper-py"]
    command += ["--manifest-path", str(weave(WORK / "direct_runtime", Path(__file__).parent))]
    environment = {**os.environ, "PYO3_BUILD_EXTENSION_MODULE": "1", "PYO3_PYTHON": sys.executable}
    subprocess.run([*command, "--target-dir", str(target)], env=environment, check=True)
    shutil.rmtree(PACKAGE, ignore_errors=True)
    shutil.copytree(ROOT / "vesper", PACKAGE / "vesper", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    shutil.copy(target / "quick" / "lib_direct.so", PACKAGE / "vesper" / f"_direct{suffix}")


# -- in the process with the planted sleep --------------------------------------------------------


def measure(situation: str, folder: Path, planted: bool) -> dict[str, Any]:
    """Run one situation and return its longest stall, what the caller waited, and what became of the node."""
    import vesper
    from tests.support.ticker import Ticker

    assert not planted or Path(vesper.__file__).is_relative_to(PACKAGE), vesper.__file__
    call = _call(situation, folder)
    if planted:
        from vesper import _direct

        _direct.select_fault(FAULT)  # type: ignore[attr-defined]
    ticker = Ticker()
    ticker.start()
    begun = time.perf_counter()
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(SLEEP_SECONDS + 10 if situation == "runs with effects" else 10)
    waited = time.perf_counter() - begun
    if situation != "control":
        time.sleep(max(0.0, SLEEP_SECONDS + 3 - waited))
    return {"situation": situation, "stall_ms": round(ticker.stop() * 1000, 1), "caller_s": round(waited, 2)}


def _call(situation: str, folder: Path) -> Callable[[], object]:
    import vesper

    if situation == "control":
        # One call of native code that keeps the GIL.
        return lambda: pow(3, 2_000_000) % 7
    (folder / "words").mkdir()
    (folder / "vesper.toml").write_text(SETTINGS, encoding="utf-8")
    name, text = ("shouted_file_v1", EFFECTS) if "effects" in situation else ("shouted_v1", PURE)
    path = folder / f"{name}.vsp"
    path.write_text(text, encoding="utf-8")
    os.chdir(folder)
    node = vesper.load(path, engine="jit" if situation == "runs with effects" else "auto")
    if situation == "follows a call":
        return lambda: node.call({"word": "quiet"})
    if situation == "follows an outcome":
        return lambda: node(word="quiet")
    return lambda: node(event_id="e1", word="quiet")


# -- the campaign ---------------------------------------------------------------------------------


def run(situation: str) -> dict[str, Any]:
    """Measure in a process of its own, with the same thread in an idle process beside it."""
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        command = [sys.executable, __file__, "--measure", situation, "--folder", folder]
        path = os.pathsep.join([str(PACKAGE), str(ROOT)])
        environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": folder}
        beside = subprocess.Popen(
            [sys.executable, __file__, "--idle"], stdout=subprocess.PIPE, env=environment, text=True
        )
        done = subprocess.run(command, env=environment, capture_output=True, check=False, text=True, timeout=300)
        beside.terminate()
        machine, _ = beside.communicate(timeout=60)
    if done.returncode:
        raise RuntimeError(f"{situation}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    log = [line for line in done.stderr.splitlines() if "latched" in line]
    return {**found, "machine_ms": json.loads(machine), "latched": bool(log)}


def best_of(situation: str) -> dict[str, Any]:
    """Measure up to three times: a lock that is kept shows every time, a busy machine does not."""
    for _ in range(_ATTEMPTS - 1):
        if is_met(found := run(situation)):
            return found
    return run(situation)


def is_met(found: dict[str, Any]) -> bool:
    """A stall counts as the machine's where the idle process had one as long."""
    bar = BAR_SECONDS * 1000
    if found["situation"] == "control":
        return bool(found["stall_ms"] > bar)
    is_followed = found["situation"] != "runs with effects"
    return (
        found["stall_ms"] <= max(bar, found["machine_ms"])
        and (found["caller_s"] < 5) == is_followed
        and (found["latched"] or not is_followed)
    )


def idle() -> None:
    """Print the longest stall until this process is ended."""
    import signal

    from tests.support.ticker import Ticker

    ticker = Ticker()
    ticker.start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        while True:
            time.sleep(3600)
    finally:
        print(round(ticker.stop() * 1000, 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", choices=SITUATIONS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--idle", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.idle:
        idle()
        return 0
    if options.measure:
        import logging

        logging.basicConfig(level=logging.WARNING)
        print(json.dumps(measure(options.measure, options.folder, planted=options.measure != "control")), flush=True)
        os._exit(0)  # a follower may still sleep
    sys.path.insert(0, str(ROOT))
    from tests.proofs.robustness.proof import PROOFS, engine_hash, write_json

    build()
    found = [best_of(each) for each in SITUATIONS]
    for each in found:
        print(f"{each['situation']:28} stall {each['stall_ms']:8.1f} ms, caller {each['caller_s']:6.2f} s, ", end="")
        print(f"idle process {each['machine_ms']:6.1f} ms: {'met' if is_met(each) else 'NOT MET'}")
    is_passed = all(map(is_met, found))
    write_json(
        PROOFS / "stalls.json",
        {"source_hash": engine_hash(), "sleep_s": SLEEP_SECONDS, "bar_ms": BAR_SECONDS * 1000, "found": found},
    )
    return 0 if is_passed else 1


if __name__ == "__main__":
    sys.exit(main())
