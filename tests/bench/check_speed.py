"""`make bench-check`: how long `vesper check` takes for a thousand nodes, and `vesper --help` at all.

Everything runs as a user runs it, in processes of its own, rounds interleaved, the best of each counting. What to
compare from machine to machine are the ratios: to libyaml reading the same files once, and to Python importing click.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
NODE = ROOT / "nodes" / "payments" / "payment_decision_v1.vsp"
NODES = 1000
ROUNDS = 5
COLD_SECONDS, WARM_SECONDS, HELP_RATIO = 3.0, 0.3, 1.5


def write_nodes(folder: Path, count: int) -> None:
    """Nodes that differ in ids, names and constants, each as long as the one they are made from."""
    text = NODE.read_text(encoding="utf-8")
    folder.mkdir(parents=True)
    for number in range(count):
        changed = text.replace("payment_decision_v1", f"payment_decision_{number:04}_v1")
        for name in ("high_risk", "new_balance", "user_age_days"):
            changed = changed.replace(name, f"{name}_{number}")
        changed = changed.replace("0.029", f"0.029{number:04}").replace("fee: 1.75000", f"fee: 1.75{number:04}")
        path = folder / f"payment_decision_{number:04}_v1.vsp"
        path.write_text(changed, encoding="utf-8")
        os.utime(path, (1_700_000_000, 1_700_000_000))  # old enough to be known by its stamp


def seconds(command: list[str], folder: Path) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True, env=environment)
    return time.perf_counter() - start


def libyaml_seconds(folder: Path) -> float:
    """All events of all files, once: the part of a check that is C."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.vsp"))]
    start = time.perf_counter()
    for text in texts:
        parser = yaml.CSafeLoader(text)
        while parser.get_event() is not None:
            pass
    return time.perf_counter() - start


def main() -> None:
    python = sys.executable
    vesper = str(Path(python).with_name("vesper"))
    best: dict[str, float] = {}

    def note(name: str, taken: float) -> None:
        best[name] = min(best.get(name, taken), taken)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_nodes(folder / "nodes", NODES)
        lines = len((folder / "nodes" / "payment_decision_0000_v1.vsp").read_text(encoding="utf-8").splitlines())
        for _ in range(ROUNDS):
            shutil.rmtree(folder / ".vesper", ignore_errors=True)
            note("yaml", libyaml_seconds(folder / "nodes"))
            note("cold", seconds([vesper, "check"], folder))
            note("warm", seconds([vesper, "check"], folder))
            if shutil.which("taskset") is not None:
                note("one", seconds(["taskset", "-c", "0", vesper, "check", "--no-cache"], folder))
        for _ in range(ROUNDS * 4):
            note("python", seconds([python, "-c", "pass"], folder))
            note("click", seconds([python, "-c", "import click"], folder))
            note("help", seconds([vesper, "--help"], folder))
    print(f"{NODES} nodes of {lines} lines, {os.cpu_count()} processors, CPython {sys.version.split()[0]}")
    print(f"  libyaml alone       {best['yaml']:6.2f} s     1.0")
    print(f"  check, cold         {best['cold']:6.2f} s  {best['cold'] / best['yaml']:6.1f}   bar {COLD_SECONDS} s")
    if "one" in best:
        print(f"  on one processor    {best['one']:6.2f} s  {best['one'] / best['yaml']:6.1f}")
    print(f"  check, unchanged    {best['warm']:6.2f} s  {best['warm'] / best['yaml']:6.1f}   bar {WARM_SECONDS} s")
    print(f"  python -c pass      {best['python'] * 1000:6.1f} ms")
    print(f"  import click        {best['click'] * 1000:6.1f} ms    1.0")
    print(f"  vesper --help       {best['help'] * 1000:6.1f} ms {best['help'] / best['click']:6.2f}   bar {HELP_RATIO}")


if __name__ == "__main__":
    main()
