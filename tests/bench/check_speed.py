"""`make bench-check`: how long `vesper check` takes for a thousand nodes, and `vesper --help` at all.

Everything runs as a user runs it, in processes of its own, rounds interleaved, the best of each counting. What to
compare from machine to machine are the ratios: to libyaml reading the same files once, and to Python importing click.
`--python /usr/bin/python3.11` (`make bench-check PYTHON=/usr/bin/python3.11`) measures another interpreter of the same
minor version, with the packages of this one; for another version make a `.venv` of its own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from vesper.cli.bench.interpreter import interpreter_at  # noqa: E402  # after the path is set

NODES_LIKE = (
    ROOT / "nodes" / "orders" / "order_pricing_v1.vsp",
    ROOT / "nodes" / "payments" / "payment_decision_v1.vsp",
)
"""The bar is for nodes that are at least as long as the first; the other is shorter and has more conditions."""
NODES = 1000
ROUNDS = 5
COLD_SECONDS, WARM_SECONDS, HELP_RATIO = 3.0, 0.3, 1.5


CHANGED_NAMES = ("high_risk", "new_balance", "user_age_days", "tax_rate", "shipping_base", "pieces", "unit_price")
CHANGED_NUMBERS = (" * 0.029", " * 0.25", "0.25 * ", " * 0.10")


def write_nodes(folder: Path, node: Path, count: int) -> None:
    """Nodes that differ in ids, names and constants, each as long as the one they are made from."""
    text = node.read_text(encoding="utf-8")
    name = node.stem.removesuffix("_v1")
    folder.mkdir(parents=True)
    for number in range(count):
        changed = text.replace(f"{name}_v1", f"{name}_{number:04}_v1")
        for word in CHANGED_NAMES:
            changed = changed.replace(word, f"{word}_{number}")
        for constant in CHANGED_NUMBERS:
            digits = constant.strip(" *")
            changed = changed.replace(constant, constant.replace(digits, f"{digits}{number:04}"))
        path = folder / f"{name}_{number:04}_v1.vsp"
        path.write_text(changed, encoding="utf-8")
        os.utime(path, (1_700_000_000, 1_700_000_000))  # old enough to be known by its stamp


def seconds(command: list[str], folder: Path) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # This tree is measured, whichever one is installed; another interpreter finds the packages of this one.
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), sysconfig.get_path("purelib")])
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


def chosen_python() -> str:
    """The interpreter to measure; one that cannot load the packages of this one is refused."""
    parser = argparse.ArgumentParser(description="How long `vesper check` takes for a thousand nodes.")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to measure")
    python = str(parser.parse_args().python)
    asked = "import sys; print(*sys.version_info[:2], sep='.')"
    try:
        version = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        parser.error(f"cannot run {python}: {error}")
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    if version != own:
        parser.error(
            f"{python} is CPython {version} and the packages here are built for {own}: "
            f"`make clean setup PYTHON={python}` makes a .venv for it, then run `make bench-check`"
        )
    return python


def main() -> None:
    python = chosen_python()
    print(f"{interpreter_at(python).described()}; {os.cpu_count()} processors")
    for node in NODES_LIKE:
        measure_checks(python, node)
    measure_start(python)


def vesper(python: str, *arguments: str) -> list[str]:
    """What the installed script does, with any interpreter."""
    return [python, "-c", "import sys; from vesper.cli.main import main; sys.exit(main())", *arguments]


def measure_checks(python: str, node: Path) -> None:
    best: dict[str, float] = {}

    def note(name: str, taken: float) -> None:
        best[name] = min(best.get(name, taken), taken)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_nodes(folder / "nodes", node, NODES)
        lines = len(node.read_text(encoding="utf-8").splitlines())
        for _ in range(ROUNDS):
            shutil.rmtree(folder / ".vesper", ignore_errors=True)
            note("yaml", libyaml_seconds(folder / "nodes"))
            note("cold", seconds(vesper(python, "check"), folder))
            note("warm", seconds(vesper(python, "check"), folder))
            if shutil.which("taskset") is not None:
                note("one", seconds(["taskset", "-c", "0", *vesper(python, "check", "--no-cache")], folder))
    print(f"{NODES} nodes of {lines} lines, as {node.stem}")
    print(f"  libyaml alone       {best['yaml']:6.2f} s     1.0")
    print(f"  check, cold         {best['cold']:6.2f} s  {best['cold'] / best['yaml']:6.1f}   bar {COLD_SECONDS} s")
    if "one" in best:
        print(f"  on one processor    {best['one']:6.2f} s  {best['one'] / best['yaml']:6.1f}")
    print(f"  check, unchanged    {best['warm']:6.2f} s  {best['warm'] / best['yaml']:6.1f}   bar {WARM_SECONDS} s")


def measure_start(python: str) -> None:
    commands = {
        "python": [python, "-c", "pass"],
        "click": [python, "-c", "import click"],
        "help": vesper(python, "--help"),
    }
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(ROUNDS * 4):
        for name, command in commands.items():
            best[name] = min(best[name], seconds(command, ROOT))
    print(f"  python -c pass      {best['python'] * 1000:6.1f} ms")
    print(f"  import click        {best['click'] * 1000:6.1f} ms    1.0")
    print(f"  vesper --help       {best['help'] * 1000:6.1f} ms {best['help'] / best['click']:6.2f}   bar {HELP_RATIO}")


if __name__ == "__main__":
    main()
