"""Rewritten forms of a node, and the relations that make them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from vesper.verify.relations.layouts import block_text
from vesper.verify.relations.subject import Edits, Subject


def _keep(inputs: Mapping[str, object]) -> dict[str, object]:
    return dict(inputs)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A document whose outcomes must be those of the node, under a mapping."""

    text: str
    convert_inputs: Callable[[Mapping[str, object]], dict[str, object]] = _keep
    names: Mapping[str, str] = field(default_factory=dict)
    """New names of inputs, outputs and steps; outcomes and requests are compared under the old ones."""
    has_new_locals: bool = False
    """True if generated Python differs even where the semantic hash, which has no names of locals, does not."""


def edited(edits: Edits) -> Rewriting:
    """Return the rewriting of edits that keep all names."""
    return Rewriting(block_text(edits.tree()))


@dataclass(frozen=True, slots=True)
class Relation:
    """A rewriting after which a node must have the same outcomes."""

    name: str
    law: str
    """What must be equal, for reports."""
    rewrite: Callable[[Subject, random.Random], Rewriting | None]
    """Returns None where the relation does not apply."""
    is_always_valid: bool = False
    """True if the checker must accept the rewriting. Others may lose a fact about null, and are then left out."""
