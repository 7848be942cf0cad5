"""Asks for tests of performers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vesper.effects.performer import Ask, EffectFailed
from vesper.effects.settings import Table
from vesper.values.generated.effects import EFFECTS
from vesper.values.types import PRIMITIVES, Type


def ask_of(
    effect: str,
    fixed: dict[str, str],
    arguments: dict[str, Any] | None = None,
    gives: Type | None = None,
    effect_class: str | None = None,
    key: str | None = None,
    timeout: float | None = None,
    is_repeat: bool = False,
    execution: str = "ex_1",
    path: str = "step",
) -> Ask:
    spec = EFFECTS[effect]
    assert tuple(fixed) == spec.fixed, "the fields that a node fixes, in their order"
    if gives is None:
        gives = PRIMITIVES[spec.gives]
    effect_class = effect_class or spec.classes[0]
    return Ask(execution, path, effect, effect_class, fixed, arguments or {}, gives, key, timeout, is_repeat)


def failure(effect: str, perform: Callable[[], object]) -> EffectFailed:
    """The failure of what must fail, with a code that the effect declares."""
    with pytest.raises(EffectFailed) as caught:
        perform()
    assert caught.value.code in EFFECTS[effect].codes()
    return caught.value


def table(where: str, **values: object) -> Table:
    return Table(f"vesper.toml: {where}", values)
