"""One local cluster for the tests of `test_ray.py`: prints a JSON object of what it found. Arguments: nodes, folder."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from click.testing import CliRunner

from vesper.cli.run.command import command
from vesper.integrations import ray as ours


def run(nodes: str, *words: str | Path) -> Any:
    return CliRunner().invoke(command, ["payment_decision", "--nodes", nodes, *map(str, words)])


def files(folder: Path) -> dict[str, str]:
    return {each.name: each.read_bytes().hex() for each in folder.iterdir()}


def main(nodes: str, folder: Path) -> dict[str, Any]:
    import ray

    given = folder / "in.parquet"
    before = set(Path(gettempdir()).glob("vesper-ray-*"))
    same = ("--batch", given, "--now", "2026-11-18T00:00:00Z", "--keep", "id")
    local = run(nodes, *same, "-o", folder / "local")
    found: dict[str, Any] = {}
    with ours.cluster("ray", 2) as workers:
        found["workers"] = workers
        ours.cluster = lambda *_: nullcontext(2)  # type: ignore[assignment]  # the one above
        remote = run(nodes, *same, "-o", folder / "remote", "--on", "ray")
        found["exit codes"] = [local.exit_code, remote.exit_code]
        found["output"] = remote.output
        found["is same"] = files(folder / "local") == files(folder / "remote")
    found["is connected"] = ray.is_initialized()
    found["new folders"] = sorted(map(str, set(Path(gettempdir()).glob("vesper-ray-*")) - before))
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
