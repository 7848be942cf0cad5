"""Draw the picture of README.md from a debugging session, and compare it with the committed one."""

from __future__ import annotations

import re
import shlex
from html import escape
from pathlib import Path

from tests.support.goldens import Golden
from tests.support.prepared import vesper

ROOT = Path(__file__).parents[2]
WIDTH = 104
SHOWN = ["debug", "payment_handler", "--comparative", "--break-on", "effect:http", "-x", "print amount * 100"]
_STYLE = """
  text { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d6dce3; }
  .command { fill: #8ab4f8; font-weight: 600; } .heading { fill: #f2c66d; } line { stroke: #4b535c; }
"""
_HEADING = re.compile(r"PYTHON RUNTIME|DIRECT RUNTIME|Comparative|=+$")
_LINE, _MARGIN, _CHARACTER = 18, 20, 7.83


def test_the_picture_of_the_readme_shows_a_real_session(golden: Golden, tmp_path: Path) -> None:
    """`make update` draws it again."""
    text, code = vesper([*SHOWN, "--nodes", str(ROOT / "nodes"), "--width", str(WIDTH)], tmp_path)
    assert code == 0, text
    lines = [f"$ {shlex.join(['vesper', *SHOWN])}", *text.rstrip().splitlines()]
    golden.check(ROOT / "docs" / "pictures" / "debug.svg", picture(lines))


def picture(lines: list[str]) -> str:
    """Return the lines of a terminal as SVG. Both columns have their own positions: renderers drop repeated spaces."""
    width = round(2 * _MARGIN + _CHARACTER * max(map(len, lines)))
    height = 2 * _MARGIN + _LINE * len(lines)
    middle = next(line.index("+") for line in lines if line.startswith("---"))
    parts: list[str] = []
    for number, line in enumerate(lines):
        y = _MARGIN + _LINE * number
        if line and set(line) <= set("-+"):
            parts.append(f'<line x1="{_MARGIN}" x2="{width - _MARGIN}" y1="{y + 9}" y2="{y + 9}"/>')
        elif line[middle : middle + 1] == "|":
            x = _x(middle) + _CHARACTER / 2
            parts.append(f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{y}" y2="{y + _LINE}"/>')
            parts += [_text(line[:middle], 0, y), _text(line[middle + 1 :], middle + 1, y)]
        elif line:
            parts.append(_text(line, 0, y))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            "<title>Both engines of Vesper at the same step of a payment</title>",
            f"<style>{_STYLE}</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#14171a"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def _x(column: int) -> float:
    return _MARGIN + _CHARACTER * column


def _text(text: str, column: int, y: int) -> str:
    shown = text.strip()
    x = _x(column + len(text) - len(text.lstrip()))
    kind = "command" if shown.startswith(("$ ", "(sir-db)")) else "heading" if _HEADING.match(shown) else "value"
    return f'<text class="{kind}" x="{x:.0f}" y="{y + 13}">{escape(shown, quote=False)}</text>'
