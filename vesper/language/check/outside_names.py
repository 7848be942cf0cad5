"""Check of outside names: the names of declarations in JSON and Arrow.

Inputs, outputs, fields and enum members can have them.
"""

from __future__ import annotations

from collections.abc import Sequence

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.syntax import ast
from vesper.values.types import Enum, OptionalOf, Outside, Type


def outside_name(declared: ast.Input | ast.Output) -> str | None:
    """Return the outside name of a declaration, or None where it is the name itself."""
    word = declared.outside
    return None if word is None or word.text == declared.name.text else word.text


def check_outside(
    what: str, declared: Sequence[tuple[ast.Input | ast.Output, Type | None]], bag: DiagnosticBag
) -> Outside | None:
    """Return the outside names. Report those that occur twice, and flags of values that cannot be absent."""
    seen: dict[str, tuple[ast.Word, str]] = {}
    for each, type_ in declared:
        word = each.name if each.outside is None else each.outside
        first, inside = seen.setdefault(word.text, (word, each.name.text))
        if inside != each.name.text:
            also = (Label(first.span, "the first one"),)
            help_ = "outside, every name is used once; one without `as` is called by its own name"
            bag.error(
                Code.NAME_TAKEN, word.span, also=also, what=f"this {what}", name=word.text, other=f"another {what}",
                help=help_,
            )  # fmt: skip
        if each.flag is not None and type_ is not None and not isinstance(type_, OptionalOf):
            help_ = f"write `type: optional<{type_}>`, or remove `absent`"
            bag.error(
                Code.TYPE_MISMATCH,
                each.flag.span,
                expected=f"an optional {what} beside `absent`",
                found=type_,
                help=help_,
            )
    outside = Outside(
        tuple((each.name.text, name) for each, _ in declared if (name := outside_name(each)) is not None),
        tuple((each.name.text, each.flag.text) for each, _ in declared if each.flag is not None),
    )
    return None if outside == Outside() else outside


def enum_outside(declared: ast.NamedType, type_: Type, bag: DiagnosticBag) -> Type:
    """Return the enum with the outside names of a declaration.

    Report unknown members, and texts that two members share.
    """
    if not declared.outside:
        return type_
    if not isinstance(type_, Enum):
        span = declared.outside[0][0].span
        bag.error(Code.TYPE_MISMATCH, span, expected="an enum beside `as`", found=type_)
        return type_
    texts = {member: member for member in type_.members}
    for member, text in declared.outside:
        if member.text not in texts:
            help_ = did_you_mean(member.text, type_.members)
            bag.error(Code.UNKNOWN_KEY, member.span, where=f"`as` of {declared.name.text}", key=member.text, help=help_)
            continue
        texts[member.text] = text.text
    seen: dict[str, str] = {}
    for name, outside in texts.items():
        first = seen.setdefault(outside, name)
        if first != name:
            # A member without a text of its own is called by its name, so one of the two has a text.
            span = next(text.span for member, text in reversed(declared.outside) if member.text in (first, name))
            what, other = f"`{name}` outside", f"`{first}`"
            bag.error(Code.NAME_TAKEN, span, what=what, name=outside, other=other)
    listed = tuple(texts.values())
    return type_ if listed == type_.members else Enum(type_.members, listed)
