"""The size of nodes beside plain Python with the same behaviour: `python -m tests.bench.authoring.sizes`.

No tokenizer is at hand, since those of models are not public or not installed. Pieces are what a byte-pair tokenizer
begins with: words cut at capitals and underscores into at most six letters, numbers of at most three digits, signs,
and the blanks of an indented line as one piece. They order texts as tokens do and are no count of tokens.
"""

from __future__ import annotations

import re
from typing import Final

from tests.bench.authoring.tasks import Task, load_tasks
from tests.support.console import ROOT
from vesper.mcp.author.search import guide

_PIECE: Final = re.compile(r"\n *|[A-Z]?[a-z]{1,6}|[A-Z]{1,6}|[0-9]{1,3}|[^\sA-Za-z0-9]{1,2}|[^\s]")
_PART: Final = re.compile(r"^# -- (\w+)\n(.*?)(?=^# -- |\Z)", re.MULTILINE | re.DOTALL)
PLAIN: Final = dict(_PART.findall((ROOT / "tests/bench/authoring/plain.py").read_text(encoding="utf-8")))
"""The text of each task in plain Python, without imports."""


def pieces(text: str) -> int:
    return len(_PIECE.findall(text))


def node_text(task: Task) -> str:
    """Return the reference solution without its cases and without the text of the task."""
    text = task.solution.source.text
    return text[text.index("node_id:") :].partition("testing:")[0]


def main() -> None:
    row = "{:<18} {:>8} {:>8} {:>8} {:>8} {:>7}"
    print(row.format("task", "node", "Python", "node", "Python", "ratio"))
    print(row.format("", "chars", "chars", "pieces", "pieces", "pieces"))
    sums = [0, 0, 0, 0]
    for task in load_tasks():
        if task.name not in PLAIN:
            continue
        ours, theirs = node_text(task).strip(), PLAIN[task.name].strip()
        counts = [len(ours), len(theirs), pieces(ours), pieces(theirs)]
        sums = [a + b for a, b in zip(sums, counts, strict=True)]
        print(row.format(task.name, *counts, f"{counts[2] / counts[3]:.2f}"))
    print(row.format(f"{len(PLAIN)} tasks", *sums, f"{sums[2] / sums[3]:.2f}"))
    print(f"the guide for models: {len(guide()):,} characters, {pieces(guide()):,} pieces, once in a conversation")


if __name__ == "__main__":
    main()
