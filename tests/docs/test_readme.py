"""Compare the Python in README.md with what the compiler generates for the node beside it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.console import ROOT, markdown_files
from tests.support.prepared import vesper

README = ROOT / "README.md"
MAX_LINES = 150


def test_the_python_of_the_readme_is_generated_from_its_node(tmp_path: Path) -> None:
    ((name, text),) = markdown_files(README).items()
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    generated, code = vesper(["compile", name], tmp_path)
    assert code == 0, generated
    (shown,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert shown in generated


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= MAX_LINES
