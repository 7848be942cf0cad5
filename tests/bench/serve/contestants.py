"""The servers that `make bench-serve` measures, one process each where that is possible."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.bench.workloads import ROOT, W1
from tests.support.serving import vesper_serve

AXUM = Path(__file__).parent / "axum"
BUILT = ROOT / ".proofs" / "bench_serve"
"""Where axum is built."""
VESPER, OTHERS = "vesper", ("litestar", "blacksheep", "robyn")
_UVICORN = ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]


@dataclass(frozen=True)
class Contestant:
    name: str
    command: list[str]
    path: str = "/decide"


def contestants() -> list[Contestant]:
    """Return all of them, Vesper first."""
    ours = vesper_serve([W1.file], "--workers", "1", "--engine", "direct", "--expose", "payment_decision_v1")
    uvicorn = [sys.executable, "-m", "uvicorn", "--port", "{port}", *_UVICORN]
    asgi = [
        Contestant(name, [*uvicorn, f"tests.bench.serve.rivals.{name}_app:app"])
        for name in ("fastapi", "litestar", "blacksheep")
    ]
    robyn = [sys.executable, "-m", "tests.bench.serve.rivals.robyn_app", "{port}"]
    return [
        Contestant(VESPER, ours, "/nodes/payment_decision_v1"),
        Contestant("axum", [str(BUILT / "release" / "w1-axum"), "{port}"]),
        *asgi,
        Contestant("robyn", robyn),
    ]


def build_axum() -> None:
    command = ["cargo", "build", "--quiet", "--release", "--locked", "--manifest-path", str(AXUM / "Cargo.toml")]
    subprocess.run([*command, "--target-dir", str(BUILT)], check=True)
