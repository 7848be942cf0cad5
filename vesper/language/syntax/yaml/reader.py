"""Reader of YAML: from a source file to its tree, or diagnostics.

`yaml_parser` reads YAML 1.2; `yaml_profile` names what a node does not use of it (docs/spec/yaml.md).
"""

from __future__ import annotations

import re
from functools import cache

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.syntax.yaml.flow import TooLarge
from vesper.language.syntax.yaml.parser import YamlParser
from vesper.language.syntax.yaml.profile import ProfileRule, refuse
from vesper.language.syntax.yaml.scalars import YamlFault
from vesper.language.syntax.yaml_tree import Tree

UNDER_INDENTED = "inside quotes or brackets a line must be indented more than its key"
_INVALID = "\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff"
_TURNS_TEXT = "\u202a-\u202e\u2066-\u2069"
"""Direction controls. They display text in another order than it is read, which can hide the behaviour of a node."""
_EXCLUDED_ASCII = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@cache
def _excluded_pattern() -> re.Pattern[str]:
    """Return the pattern of characters that a node must not contain.

    It is compiled on first use: that takes 10 ms, and ASCII texts never need it.
    """
    return re.compile(f"[{_INVALID}{_TURNS_TEXT}\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff]")


def read_yaml(bag: DiagnosticBag) -> Tree | None:
    """Return the tree of the bag's source, or None if the bag then has errors."""
    if not check_characters(bag):
        return None
    parser = YamlParser(bag)
    root: Tree | None = None
    try:
        root = parser.parse()
    except YamlFault as fault:
        for each in _all_faults(bag.source) or [fault]:
            bag.error(Code.INVALID_YAML, bag.source.character(each.offset), reason=each.reason, help=each.help)
        return None
    except TooLarge:
        return None
    for offset in parser.under_indented:
        bag.error(Code.INVALID_YAML, bag.source.character(offset), reason=UNDER_INDENTED)
    if root is None and not bag.has_errors:
        help_ = "`vesper new NAME` writes a node to start from"
        refuse(ProfileRule.ONE_DOCUMENT, "an empty file", bag.source.character(0), bag, help_)
    return None if bag.has_errors else root


def _all_faults(source: SourceFile) -> list[YamlFault]:
    return recover_yaml(source)[1]


def recover_yaml(source: SourceFile) -> tuple[Tree | None, list[YamlFault]]:
    """Return the readable part of a text that is not YAML, and its faults."""
    from vesper.language.syntax.yaml.recovery import RecoveringParser  # for a faulty file only

    parser = RecoveringParser(DiagnosticBag(source))
    root: Tree | None = None
    try:
        root = parser.parse()
    except YamlFault as fault:
        if not parser.has_enough:
            parser.note(fault, 0, -1)
    except (TooLarge, CheckingStopped):
        return None, []
    return root, parser.faults


def missing_spaces(source: SourceFile) -> dict[int, int]:
    """Return the number of missing spaces by line, for lines inside quotes or brackets.

    The key is the offset of the line.
    """
    parser = YamlParser(DiagnosticBag(source))
    try:
        parser.parse()
    except (YamlFault, TooLarge, CheckingStopped):
        return {}
    return parser.under_indented


def check_characters(bag: DiagnosticBag) -> bool:
    """Report the characters that a node must not contain. Returns whether the other characters can be YAML."""
    text = bag.source.text
    for found in (_EXCLUDED_ASCII if text.isascii() else _excluded_pattern()).finditer(text):
        span = Span(found.start(), found.end())
        character = f"the character U+{ord(found[0]):04X}"
        if re.match(f"[{_INVALID}]", found[0]):
            bag.error(Code.INVALID_YAML, span, reason=f"{character} cannot be in a text")
            return False
        if re.match(f"[{_TURNS_TEXT}]", found[0]):
            feature = f"{character}, which turns the direction of text,"
            refuse(ProfileRule.TEXT_DIRECTION, feature, span, bag)
        else:
            refuse(ProfileRule.CONTROL_CHARACTERS, character, span, bag)
    return True
