"""Every relation, in the order in which reports list them."""

from __future__ import annotations

from vesper.verify.relations import (
    branching,
    functions,
    input_relations,
    layout_relations,
    loops,
    operators,
    parentheses,
    renaming,
    step_order,
    values,
)
from vesper.verify.relations.rewritings import Relation

ALL_RELATIONS: tuple[Relation, ...] = (
    *layout_relations.RELATIONS,
    *parentheses.RELATIONS,
    *renaming.RELATIONS,
    *operators.RELATIONS,
    *values.RELATIONS,
    *functions.RELATIONS,
    *step_order.RELATIONS,
    *branching.RELATIONS,
    *loops.RELATIONS,
    *input_relations.RELATIONS,
)
