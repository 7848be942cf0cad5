"""Engines on the command line and in its output. The second engine is `direct`; `interp` and `jit` are its tiers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from vesper.engines.registry import DIRECT, FIRST_TIER, NAMES, REFERENCE, engine_label

TIERS = tuple(name for name in NAMES if name != REFERENCE)


class EngineChoice(click.Choice[str]):
    """One engine by name. `direct` selects the first tier of the direct engine."""

    def __init__(self, names: Iterable[str] = NAMES, *others: str) -> None:
        known = list(names)
        super().__init__([REFERENCE, DIRECT, *(name for name in known if name != REFERENCE), *others])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        name = super().convert(value, param, ctx)
        return FIRST_TIER if name == DIRECT else name


__all__ = ["DIRECT", "FIRST_TIER", "TIERS", "EngineChoice", "engine_label"]
