"""What an installed Vesper must be able to do: run by `wheels.py` with the Python of a fresh environment, outside the
repository and without a Rust toolchain on PATH. Uses nothing of the repository. Prints one line of JSON."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import json
import os
import platform
import runpy
import shutil
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

NODE = """\
node_id: fee_v1
type: function
intent: The fee of a payment, with a part of it for each line

inputs:
  amount: decimal
  lines:  array<decimal>

outputs:
  success:
    fee:   decimal
    total: decimal
    kind:  enum[small, large]

contracts:
  preconditions:
    - amount > 0

flow:
  - step: fee
    operation: compute
    value: amount * 0.029 + 0.30
  - step: total
    operation: compute
    value: SUM(line FOR line IN lines) + fee
  - step: kind
    operation: compute
    value: "IF total > 100 THEN 'large' ELSE 'small'"
  - operation: return
    success: [fee, total, kind]

testing:
  test_cases:
    - name: two lines
      inputs: {amount: 10.00, lines: [1.50, 2]}
      expect: {fee: 0.59000, total: 4.09000, kind: small}
"""
GIVEN: dict[str, Any] = {"amount": "10.00", "lines": ["1.50", 2]}
EXPECTED = {"fee": Decimal("0.59000"), "total": Decimal("4.09000"), "kind": "small"}


def command(*arguments: str) -> str:
    """What the installed command prints; ends the smoke test where it fails."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("vesper")), *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"vesper {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(fact: bool, what: str) -> None:
    if not fact:
        sys.exit(f"smoke test: {what}")


def installed() -> None:
    """It is the installed package, and there is nothing to build another with."""
    import vesper

    for tool in ("cargo", "rustc", "maturin"):
        expect(shutil.which(tool) is None, f"there is a {tool} on PATH, which the test is to do without")
    place = Path(str(vesper.__file__)).resolve()
    expect(Path(sys.prefix).resolve() in place.parents, f"vesper comes from {place}")
    expect(importlib.metadata.version("vesper") == vesper.__version__, "the metadata have another version")
    expect(importlib.resources.files("vesper").joinpath("py.typed").is_file(), "py.typed is missing")


def commands(folder: Path) -> None:
    (folder / "nodes").mkdir()
    (folder / "nodes" / "fee_v1.vsp").write_text(NODE, encoding="utf-8")
    expect(command("--version").strip().endswith(importlib.metadata.version("vesper")), "--version says another")
    command("check")
    inputs = folder / "inputs.json"
    inputs.write_text(json.dumps(GIVEN), encoding="utf-8")
    for engine in ("python", "interp", "both"):
        shown = command("run", "fee", "--engine", engine, "--json", str(inputs))
        expect("4.09000" in shown, f"vesper run --engine {engine} printed {shown}")
    command("verify", "fee", "--max-examples", "200", "--seed", "1")
    command("compile", "fee", "-o", str(folder / "fee.py"))
    generated = runpy.run_path(str(folder / "fee.py"))
    expect(generated["call"](GIVEN) == EXPECTED, "generated Python came to something else")
    command("new", "other")
    command("check", "other")
    command("doctor")
    expect("_VESPER_COMPLETE" in command("completion", "bash"), "there is no completion script")


def demo() -> None:
    """The demo needs nodes, a server and both engines, all from the package."""
    shown = command("demo", "--no-watch")
    expect("Next: " in shown, f"vesper demo ended early:\n{shown}")


def library() -> str:
    """`vesper.load` on both engines, good inputs and bad ones; how decimals are read."""
    import vesper
    from vesper.engines.direct_engine import decimal_access

    told = []
    for engine in ("python", "interp"):
        node = vesper.load("fee", engine=engine)
        good, bad, broken = node(GIVEN), node({"amount": 0.5}), node({"amount": 0, "lines": []})
        expect(good.ok and good.value == EXPECTED, f"vesper.load on {engine}: {good}")
        expect(not bad.ok and not broken.ok, f"vesper.load on {engine} took bad inputs")
        told.append([str(good), str(bad.error), str(broken.error)])
    expect(told[0] == told[1], f"the engines differ: {told}")
    return decimal_access()


def main() -> None:
    installed()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        commands(Path(place))
        access = library()
        demo()
        os.chdir("/")
    print(json.dumps({"python": platform.python_version(), "machine": platform.machine(), "decimals": access}))


if __name__ == "__main__":
    main()
