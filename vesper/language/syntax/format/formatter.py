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
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree


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
    plain = bag.source.text.replace("\r\n", "\n").replace("\r", "\n")
    plain = plain if plain.endswith("\n") else f"{plain}\n"
    placed = tree if plain == bag.source.text else read_yaml(DiagnosticBag(SourceFile(bag.source.path, plain)))
    assert placed is not None, "line ends do not change the meaning"
    formatted = lines_to_text(lay_out(read_pieces(plain, placed)))
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
