"""The formatter: one layout for a node's text that keeps all words and comments.

Takes a source file and returns its formatted text, or diagnostics. `pieces` splits the text, `layout` arranges the
pieces in lines, and `lines` joins them. No tree is dumped, so quoting, comments, paragraphs, key order and the choice
between flow and block style stay unchanged. The result is parsed and compared with the original; a text with another
meaning is never returned.
"""

from __future__ import annotations

from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.format.layout import lay_out
from vesper.language.syntax.format.lines import lines_to_text
from vesper.language.syntax.format.pieces import read_pieces
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree, read_yaml

_OTHER_BREAKS = frozenset("\x85\u2028\u2029\ufeff")
"""Characters with which a file is not formatted.

YAML 1.1 reads the first three as line breaks, and skips the byte order mark in some columns only.
"""


class FormatFault(Exception):
    """The formatted text would change the meaning of the source: a defect of Vesper."""


def format_source(bag: DiagnosticBag) -> str | None:
    """Return the formatted text of the bag's source, or None when the bag has errors."""
    try:
        tree = read_yaml(bag)
    except CheckingStopped:
        return None
    if tree is None:
        return None
    text = bag.source.text
    if not _OTHER_BREAKS.isdisjoint(text):
        return text
    pieces = read_pieces(text.replace("\r\n", "\n").replace("\r", "\n"))
    formatted = lines_to_text(lay_out(pieces))
    again = DiagnosticBag(SourceFile(bag.source.path, formatted))
    result = read_yaml(again)
    if result is None or not same_tree(tree, result):
        raise FormatFault(f"the formatted text of {bag.source.path} has another meaning than the file")
    return formatted


def same_tree(left: Tree, right: Tree) -> bool:
    """Return whether two trees are equal apart from spans."""
    match left, right:
        case Scalar(), Scalar():
            return left.text == right.text and left.style == right.style
        case Sequence(), Sequence():
            return len(left.items) == len(right.items) and all(map(same_tree, left.items, right.items))
        case Mapping(), Mapping():
            return len(left.entries) == len(right.entries) and all(
                same_tree(one[0], other[0]) and same_tree(one[1], other[1])
                for one, other in zip(left.entries, right.entries, strict=True)
            )
    return False
