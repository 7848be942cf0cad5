"""Reads `schemas/effects.toml`: every effect that a step may ask for.

In: the TOML file. Out: `Effect` values, in declared order. What the fields mean is said at the head of the file.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import type_text

CLASSES = ("read", "keyed", "txn", "probe", "unsafe")
ANY_TYPE = ("any", "record")
"""What an argument may be declared with besides a type."""
COMPLETIONS = ("declared", "states")
"""What an effect may give besides a type: the type that the step says, the enum of the machine's states."""


class EffectDeclarationError(Exception):
    """A declaration of an effect that cannot be used; the message names it."""


@dataclass(frozen=True, slots=True)
class Effect:
    name: str
    doc: str
    operations: tuple[str, ...]
    capability: str
    classes: tuple[str, ...]
    fixed: tuple[str, ...]
    arguments: tuple[tuple[str, str, bool], ...]
    """Name, type text, whether it may be missing."""
    gives: str
    fails: tuple[str, ...]


def load_effects(path: Path, error_names: set[str]) -> tuple[Effect, ...]:
    table = tomllib.loads(path.read_text(encoding="utf-8"))["effect"]
    return tuple(_effect(name, entry, error_names) for name, entry in table.items())


def _effect(name: str, entry: dict[str, Any], error_names: set[str]) -> Effect:
    fields = {"doc", "operations", "capability", "classes", "fixed", "arguments", "gives", "fails"}
    if set(entry) != fields:
        raise EffectDeclarationError(f"effects.toml: {name} has {sorted(set(entry) ^ fields)} too much or too little")
    if unknown := set(entry["classes"]) - set(CLASSES):
        raise EffectDeclarationError(f"effects.toml: {name}: {sorted(unknown)} are no classes")
    # `http_error` stands for every status, and is no code of its own.
    if unknown := set(entry["fails"]) - error_names - {"http_error"}:
        raise EffectDeclarationError(f"effects.toml: {name} fails with {sorted(unknown)}, which errors.toml lacks")
    arguments = tuple(
        (argument, str(declared["type"]), bool(declared.get("optional", False)))
        for argument, declared in entry["arguments"].items()
    )
    for argument, text, _ in arguments:
        for word in text.split(" | "):
            _check_type(f"{name}: {argument}", word, ANY_TYPE)
    _check_type(f"{name}: gives", entry["gives"], COMPLETIONS)
    return Effect(
        name=name,
        doc=entry["doc"],
        operations=tuple(entry["operations"]),
        capability=entry["capability"],
        classes=tuple(entry["classes"]),
        fixed=tuple(entry["fixed"]),
        arguments=arguments,
        gives=entry["gives"],
        fails=tuple(entry["fails"]),
    )


def _check_type(where: str, word: str, besides: tuple[str, ...]) -> None:
    if word not in (*besides, *type_text.PRIMITIVES):
        raise EffectDeclarationError(f"effects.toml: {where}: `{word}` is no type that an effect may have")
