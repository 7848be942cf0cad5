"""Relations of layout: the same words in another style of YAML."""

from __future__ import annotations

import random

from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.syntax.format.formatter import format_source
from vesper.language.syntax.yaml_tree import Scalar
from vesper.verify.relations.layouts import BLOCK_STYLES, block_text, flow_text, restyle
from vesper.verify.relations.rewritings import Relation, Rewriting
from vesper.verify.relations.subject import Edits, Subject

_COMMENTS = ("# a comment", "#", "  # then: false", "", "# - {step: x}", "      # \"quoted' [text")


def _format(subject: Subject, chance: random.Random) -> Rewriting | None:
    del chance
    text = format_source(DiagnosticBag(subject.source))
    return None if text is None else Rewriting(text)


def _use_block_style(subject: Subject, chance: random.Random) -> Rewriting | None:
    del chance
    return Rewriting(block_text(Edits(subject).tree()))


def _use_flow_style(subject: Subject, chance: random.Random) -> Rewriting | None:
    del chance
    return Rewriting(flow_text(Edits(subject).tree()))


def _comment(subject: Subject, chance: random.Random) -> Rewriting | None:
    lines: list[str] = []
    for line in block_text(Edits(subject).tree()).splitlines():
        if chance.random() < 0.3:
            lines.append(chance.choice(_COMMENTS))
        lines.append(f"{line}  # {chance.randrange(100)}: note" if chance.random() < 0.3 else line)
    return Rewriting("\n".join(lines) + "\n")


def _requote(subject: Subject, chance: random.Random) -> Rewriting | None:
    """Write expressions in other styles of YAML quotes, which do not change the meaning of an expression."""
    whole = set()
    for root in subject.roots:
        scalar = subject.scalar_at(root.expression.span)
        if root.is_written and scalar is not None and subject.is_all_of(root.expression.span, scalar):
            whole.add(scalar.span.start)
    tree = Edits(subject).tree()

    def style_of(scalar: Scalar) -> str | None:
        if scalar.span.start not in whole or "\n" in scalar.text or not scalar.text.strip():
            return None
        # Only double quotes have escapes.
        return chance.choice(("'", '"', *BLOCK_STYLES)) if scalar.text.isprintable() else '"'

    return Rewriting(block_text(restyle(tree, style_of))) if whole else None


RELATIONS = (
    Relation("formatted", "the text of `vesper fmt` has the same outcomes", _format, True),
    Relation("block_style", "block style has the same outcomes", _use_block_style, True),
    Relation("flow_style", "flow style has the same outcomes", _use_flow_style, True),
    Relation("commented", "comments and blank lines keep the outcomes", _comment, True),
    Relation("requoted", "an expression has the same outcomes in every style of quotes", _requote, True),
)
