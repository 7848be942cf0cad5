"""Type-check an application that uses all of the API, and a file of mistakes, with mypy and pyright.

python -m tests.proofs.typing.run PYRIGHT
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.proofs.robustness.proof import write_proof
from tests.proofs.typing.project import mistakes, mypy_errors, pyright_errors, write_project
from tests.support.nodes import worked_nodes

PASSING = ("application.py", "web.py")


def main(pyright: str) -> int:
    with TemporaryDirectory() as name:
        folder = Path(name)
        modules = [str(each.relative_to(folder)) for each in write_project(folder, worked_nodes())]
        mypy = _output(folder, [sys.executable, "-m", "mypy", *PASSING, "narrowing.py", "mistakes.py", *modules])
        files = [*PASSING, "mistakes.py"]
        other = _output(folder, [pyright, "--pythonpath", sys.executable, "--outputjson", *files])
    expected = {"mistakes.py": set(mistakes())}
    for checker, found in (("mypy", mypy_errors(mypy)), ("pyright", pyright_errors(other))):
        if found != expected:
            print(f"{checker}: errors in {found}, expected in {expected}")
            return 1
    summary = {
        "mypy": version("mypy"),
        "pyright": json.loads(other)["version"],
        "nodes": len(worked_nodes()),
        "files_without_errors": [*PASSING, f"{len(modules)} stubs"],
        "mistakes": len(expected["mistakes.py"]),
        "found_by_both": len(expected["mistakes.py"]),
    }
    write_proof("types", summary)
    print(json.dumps(summary))
    return 0


def _output(folder: Path, command: list[str]) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
