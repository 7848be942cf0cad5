"""`vesper.__all__`, the type stub and the documentation name the same; importing the package loads none of them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import vesper

ROOT = Path(__file__).parents[3]


def test_all_has_the_names_of_the_stub_and_of_the_documentation() -> None:
    stub = ast.parse((ROOT / "vesper" / "__init__.pyi").read_text(encoding="utf-8"))
    imported = {
        each.asname for line in stub.body if isinstance(line, ast.Import | ast.ImportFrom) for each in line.names
    }
    (listed,) = [ast.literal_eval(line.value) for line in stub.body if isinstance(line, ast.Assign)]
    page = (ROOT / "docs" / "how-to" / "use-from-python.md").read_text(encoding="utf-8")
    rows = page.partition("## Public names\n")[2].partition("|---|---|\n")[2]
    documented = [name for row in rows.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert len(set(vesper.__all__)) == len(vesper.__all__)
    assert set(vesper.__all__) == imported == set(listed) == set(documented)
    assert len(documented) == len(set(documented))
    for name in vesper.__all__:
        assert getattr(vesper, name) is not None


def test_every_exception_is_a_vesper_error() -> None:
    found = [getattr(vesper, name) for name in vesper.__all__ if name != "EffectFailed"]  # raised by custom effects
    for each in found:
        if isinstance(each, type) and issubclass(each, Exception):
            assert issubclass(each, vesper.VesperError), each


def test_a_star_import_gives_them_and_a_plain_import_loads_nothing() -> None:
    script = (
        "import sys; before = set(sys.modules); import vesper; print(sorted(set(sys.modules) - before)); "
        "from vesper import *; print(load.__name__, Outcome.__name__, testing.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "['vesper']\nload Outcome vesper.testing\n"
