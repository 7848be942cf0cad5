"""Check of the undamaged parts of a faulty file, for independent problems.

A file that is not YAML, or has wrong fields, is read and checked as far as possible. A diagnostic is reported only if
no damaged text could change it: neither its own lines nor a declaration of its name.
"""

from __future__ import annotations

import logging
import re

from vesper.language.check.ast_to_ir import check_document
from vesper.language.check.callees import Callees
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import CheckingStopped, Diagnostic, DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.yaml.parser import MISINDENTED
from vesper.language.syntax.yaml.reader import recover_yaml
from vesper.language.syntax.yaml_to_ast import build_partial_ast, is_library

_UNBOUNDED = frozenset([Code.TOO_DEEP, Code.TOO_LARGE])
_ABOUT_NAMES = frozenset([Code.UNKNOWN_NAME, Code.UNKNOWN_TYPE, Code.UNKNOWN_KEY])
_HIDING = frozenset([Code.INVALID_YAML, Code.YAML_FEATURE, Code.UNKNOWN_KEY, Code.WRONG_KIND, Code.DUPLICATE_KEY])
_ABOUT_TEXT = frozenset([Code.EXPRESSION_SYNTAX, Code.BAD_CHARACTER, Code.BAD_NUMBER, Code.OTHER_SPELLING])
_TRUSTED = (
    _ABOUT_NAMES
    | _ABOUT_TEXT
    | {
        Code.OPERATOR_TYPES,
        Code.TYPE_MISMATCH,
        Code.NOT_A_MEMBER,
        Code.BAD_LITERAL,
        Code.FUNCTION_ARGUMENTS,
        Code.BAD_NAME,
        Code.WRONG_KIND,
        Code.UNKNOWN_OPERATION,
        Code.BAD_PATTERN,
        Code.AMBIGUOUS_WORD,
    }
)
"""Diagnostics about one place. Those about a whole node, such as a missing return, may follow from what is damaged."""
_LOGGER = logging.getLogger(__name__)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def check_remainder(bag: DiagnosticBag, callees: Callees) -> None:
    """Add the problems of a faulty file that are independent of those in the bag."""
    known = bag.sorted()
    if any(each.code in _UNBOUNDED for each in known):
        return
    tree = recover_yaml(bag.source)[0]
    if tree is None or is_library(tree):
        return
    found = DiagnosticBag(bag.source)
    found.adopt(bag)  # with these errors, no part of the check expects a whole node
    built = known
    try:
        document = build_partial_ast(tree, found)
        built = found.sorted()
        if document is not None:
            check_document(document, found, callees)
    except CheckingStopped:
        pass  # what was found until then counts
    except Exception as error:  # noqa: BLE001  # see below
        # A damaged document may lack what a check relies on: a loop without its `over`, a request without its root.
        # The file is refused in any case, for the faults that are in the bag; what was found until here counts.
        _LOGGER.debug("the rest of %s was not checked: %r", bag.source.path, error)
    damage = _Damage(bag.source, [each for each in built if each.code not in (Code.OTHER_SPELLING, Code.BAD_NAME)])
    places = {(each.code, each.primary.span) for each in known}
    bag.adopt(found, lambda each: (each.code, each.primary.span) not in places and damage.is_independent(each))


class _Damage:
    """The damaged lines of a file, and the words around them. The words are those of whole steps or sections."""

    def __init__(self, source: SourceFile, faults: list[Diagnostic]) -> None:
        self._source = source
        self._lines = source.text.splitlines()
        self._hidden: set[int] = set()
        self._words: set[str] = set()
        self._hides_names = False
        """Whether a faulty line may be a declaration; then a name is unknown only if it resembles a known one."""
        for fault in faults:
            line = source.position(fault.primary.span.start)[0] - 1
            if line >= len(self._lines):
                continue
            if fault.code in _HIDING:
                # A line that is no key belongs to the value above it.
                first = line - (MISINDENTED in fault.headline and ":" not in self._lines[line])
                self._hidden |= set(range(max(first, 0), self._end(line)))
            self._words.update(_WORD.findall(source.slice(fault.primary.span)))
            if fault.code is Code.WRONG_KIND:
                self._hidden |= set(range(line, source.position(fault.primary.span.end)[0]))
            self._hides_names |= fault.code is Code.INVALID_YAML
            start = self._item_start(line)
            for each in self._lines[start : self._end(start)]:
                self._words.update(_WORD.findall(each))

    def is_independent(self, diagnostic: Diagnostic) -> bool:
        """Return whether a diagnostic would remain after a repair of the damaged text."""
        line = self._source.position(diagnostic.primary.span.start)[0] - 1
        if diagnostic.code not in _TRUSTED or line in self._hidden:
            return False
        about = set(_WORD.findall(self._source.slice(diagnostic.primary.span)))
        is_plausible = not self._hides_names or (diagnostic.help or "").startswith(("did you mean", "write"))
        if diagnostic.code in _ABOUT_NAMES and (about & self._words or not is_plausible):
            return False
        # A condition that was not read may have shown that a value is not null.
        is_about_null = "optional<" in diagnostic.headline or "null" in f"{diagnostic.headline} {diagnostic.help}"
        return not (is_about_null and set(_WORD.findall(self._lines[line])) & self._words)

    def _indent(self, line: int) -> int | None:
        text = self._lines[line]
        return None if not text.strip() or text.lstrip().startswith("#") else len(text) - len(text.lstrip())

    def _end(self, start: int) -> int:
        """Return the line after the block that starts at `start`."""
        least = self._indent(start)
        for line in range(start + 1, len(self._lines)):
            indent = self._indent(line)
            if least is not None and indent is not None and indent <= least:
                return line
        return len(self._lines)

    def _item_start(self, line: int) -> int:
        """Return the first line of the outermost list item around a line.

        Without a list it is the first line of the section.
        """
        found, least = line, self._indent(line)
        is_item = False
        for above in range(line, -1, -1):
            indent = self._indent(above)
            if indent is None or (least is not None and indent > least) or (above < line and indent == least):
                continue
            least = indent
            if self._lines[above].lstrip().startswith("- "):
                found, is_item = above, True
            elif not is_item:
                found = above
            if indent == 0:
                break
        return found
