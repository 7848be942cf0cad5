"""`make proof-fuzz`: ten minutes of libFuzzer on each target of `direct_runtime/fuzz`, all at once.

The targets are built by the stable compiler with coverage and without a sanitizer: all but PyO3's crate is safe Rust,
so what can go wrong is a panic, a fault of the engine, a hang or a lot of memory. Seeds, corpora and what was found
stay under `.proofs/fuzz/`; the next run begins with the corpora. A clean run writes `docs/proofs/fuzz.json`, a shorter
one only prints.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import PROOFS, STATE, engine_hash, write_json  # noqa: E402  # after the path is set

NAME = "fuzz"
SECONDS = 600
TARGETS = {"decode_ir": 24_000, "values": 4_096, "http_answer": 8_192}
"""Each with the longest input it is given, in bytes."""
WITH_HOST = {"http_answer"}
"""Targets of the Host, whose dependencies take most of the time to build."""
LIMIT_MIB = 512
LIMIT_SECONDS = 5
FOLDER = STATE / NAME
BUILT = ROOT / "direct_runtime" / "target" / NAME
FLAGS = (
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
)
"""What cargo-fuzz gives rustc too, less the sanitizer, which only a nightly compiler has."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=SECONDS, help="how long each target runs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without-host", action="store_true", help=f"leave out {', '.join(WITH_HOST)}")
    asked = parser.parse_args()
    targets = [target for target in TARGETS if not (asked.without_host and target in WITH_HOST)]
    sys.exit(campaign(targets, asked.seconds, asked.seed))


def build(targets: Sequence[str]) -> Path:
    """Build the targets; the folder of their programs."""
    version = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    host = version.split("host: ")[1].split()[0]
    # With `--target` the flags are not for build scripts, which have nothing to link the counters to.
    options = ["--release", "--locked", "--bins", "--target", host, "--target-dir", str(BUILT)]
    if WITH_HOST.isdisjoint(targets):
        options.append("--no-default-features")
    manifest = ROOT / "direct_runtime" / "fuzz" / "Cargo.toml"
    command = ["cargo", "build", "--quiet", *options, "--manifest-path", str(manifest)]
    subprocess.run(command, check=True, env={**os.environ, "RUSTFLAGS": " ".join(FLAGS)})
    return BUILT / host / "release"


def limit_seconds(seconds: int) -> int:
    """How long one input may take. A sample is taken beside other tests: their time counts there too."""
    return LIMIT_SECONDS if seconds >= SECONDS else 10 * LIMIT_SECONDS


def command_of(programs: Path, target: str, seconds: int, seed: int) -> list[str]:
    corpus = FOLDER / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    found = FOLDER / "found"
    found.mkdir(parents=True, exist_ok=True)
    return [
        str(programs / target),
        f"-max_total_time={seconds}",
        f"-seed={seed}",
        f"-rss_limit_mb={LIMIT_MIB}",
        f"-timeout={limit_seconds(seconds)}",
        f"-max_len={TARGETS[target]}",
        f"-dict={FOLDER / 'seeds' / 'words.dict'}",
        f"-artifact_prefix={found}/{target}-",
        "-print_final_stats=1",
        str(corpus),
        str(FOLDER / "seeds" / target),
    ]


def campaign(targets: Sequence[str], seconds: int, seed: int) -> int:
    from tests.proofs.robustness.fuzz_seeds import write_seeds

    sources = engine_hash()
    programs = build(targets)
    seeds = write_seeds(FOLDER / "seeds")
    begun = time.monotonic()
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for target in targets:
            with log_of(target).open("wb") as log:
                running[target] = subprocess.Popen(
                    command_of(programs, target, seconds, seed), stdout=log, stderr=subprocess.STDOUT
                )
        # Of each its own processor time: on a busy machine ten minutes may hold little of it, and the proof says so.
        ended = {target: os.wait4(process.pid, 0) for target, process in running.items()}
        codes = {target: os.waitstatus_to_exitcode(status) for target, (_, status, _) in ended.items()}
    except BaseException:
        for process in running.values():
            process.kill()
        raise
    elapsed = round(time.monotonic() - begun, 1)
    results = {target: read_log(log_of(target).read_text(encoding="utf-8", errors="replace")) for target in targets}
    for target, code in codes.items():
        if code != 0:
            print(f"{target} ended with {code}; its last words, of {log_of(target)}:", file=sys.stderr)
            print("".join(ending(log_of(target))), file=sys.stderr)
            print(f"`{programs / target} FILE` runs what was found once more", file=sys.stderr)
    if any(codes.values()):
        return 1
    proof = {
        "source_hash": sources,
        "seed": seed,
        "seconds_each": seconds,
        "limit_mib": LIMIT_MIB,
        "limit_seconds_an_input": limit_seconds(seconds),
        "targets": {
            target: {
                "seeds": seeds[target],
                **results[target],
                "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
                "crashes": 0,
            }
            for target, (_, _, usage) in ended.items()
        },
        "elapsed_seconds": elapsed,
    }
    if seconds >= SECONDS and len(targets) == len(TARGETS):
        write_json(PROOFS / f"{NAME}.json", proof)
    print(json.dumps(proof, indent=2))
    return 0


def log_of(target: str) -> Path:
    return FOLDER / f"{target}.log"


def ending(log: Path, lines: int = 60) -> list[str]:
    """The end of a log without the lines that say what is new."""
    with log.open(encoding="utf-8", errors="replace") as text:
        return [line for line in text if not line.startswith("#")][-lines:]


def read_log(text: str) -> dict[str, Any]:
    """The numbers that libFuzzer ends with. Without them it did not end well."""
    counts = {name: int(number) for name, number in re.findall(r"stat::(\w+):\s+(\d+)", text)}
    edges = [int(number) for number in re.findall(r"^#\d+\s.*? cov: (\d+)", text, re.MULTILINE)]
    places = re.search(r"\((\d+) inline 8-bit counters\)", text)
    return {
        "executions": counts.get("number_of_executed_units", 0),
        "coverage": max(edges, default=0),
        "coverage_of": int(places.group(1)) if places else 0,
        "peak_mib": counts.get("peak_rss_mb", 0),
        "slowest_seconds": counts.get("slowest_unit_time_sec", 0),
    }


if __name__ == "__main__":
    main()
