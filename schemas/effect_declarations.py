"""Loader of `effects.toml`, `capabilities.toml` and `metrics.toml`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).parent
CLASSES = ("read", "keyed", "txn", "probe", "unsafe", "wait")
METRIC_KINDS = ("counter", "gauge", "histogram")
ACROSS = ("sum", "max", "latest")


class EffectError(Exception):
    """An invalid declaration."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of an effect."""

    name: str
    type: str
    """A type, `any`, `record`, or several separated by `|`."""
    optional: bool


@dataclass(frozen=True, slots=True)
class Effect:
    """Declaration of one effect."""

    name: str
    doc: str
    operations: tuple[str, ...]
    capability: str
    classes: tuple[str, ...]
    """Effect classes that a step may choose; the first is the default."""
    fixed: tuple[str, ...]
    arguments: tuple[Argument, ...]
    gives: str
    fails: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InterruptKind:
    """Declaration of one kind of interrupts."""

    name: str
    doc: str
    ttl_us: int | None
    """Time to live of a step without `ttl`; None never expires."""
    is_answered: bool
    """Whether the step must declare the type of the answer."""


@dataclass(frozen=True, slots=True)
class Capability:
    """A resource and an operation on it; targets are configured."""

    name: str
    doc: str
    steps: tuple[str, ...] = ()
    """Steps that may need it although no effect declares it."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Declaration of one metric."""

    name: str
    doc: str
    kind: str
    unit: str
    labels: tuple[str, ...]
    across: str | None
    """How the values of several processes combine; None for what is added up."""

    @property
    def constant(self) -> str:
        return self.name.removeprefix("sir.").removesuffix("_ms").replace(".", "_").upper()

    @property
    def prometheus(self) -> str:
        """Name in Prometheus, in base units. The samples of a counter have the suffix `_total`."""
        return self.name.replace(".", "_").removesuffix("_total").replace("_ms", "_seconds")


def load_effects(error_codes: set[str]) -> tuple[Effect, ...]:
    """Read the effects and check their capabilities, classes and codes."""
    effects = tuple(_effect(name, entry) for name, entry in _table("effects.toml", "effect").items())
    capabilities = {each.name for each in load_capabilities()}
    for effect in effects:
        where = f"effects.toml: {effect.name}"
        if ".".join(effect.capability.split(".")[:2]) not in capabilities:
            raise EffectError(f"{where} needs {effect.capability}, which capabilities.toml does not declare")
        if set(re.findall(r"\{(\w+)\}", effect.capability)) - {*effect.fixed, "table"}:
            raise EffectError(f"{where}: {effect.capability} has a hole that is no fixed field")
        if unknown := set(effect.fails) - error_codes:
            raise EffectError(f"{where} fails with {sorted(unknown)}, which errors.toml does not declare")
        if unknown := set(effect.classes) - set(CLASSES):
            raise EffectError(f"{where} has unknown classes {sorted(unknown)}")
    return effects


def load_interrupt_kinds() -> tuple[InterruptKind, ...]:
    units = {"m": 60_000_000, "h": 3_600_000_000}
    found = []
    for name, entry in _table("effects.toml", "interrupt_kind").items():
        ttl = entry.get("ttl")
        ttl_us = None if ttl is None else int(ttl[:-1]) * units[ttl[-1]]
        found.append(InterruptKind(name, entry["doc"], ttl_us, entry["is_answered"]))
    return tuple(found)


def load_capabilities() -> tuple[Capability, ...]:
    found = _table("capabilities.toml", "capability").items()
    return tuple(Capability(name, entry["doc"], tuple(entry.get("steps", ()))) for name, entry in found)


def load_metrics(table: str = "metric") -> tuple[Metric, ...]:
    """Read the metrics of processes that run nodes, or with `kernel_metric` those of the kernel."""
    found = []
    for name, entry in _table("metrics.toml", table).items():
        if entry["kind"] not in METRIC_KINDS:
            raise EffectError(f"metrics.toml: {name} has kind {entry['kind']}")
        across = entry.get("across")
        if across not in (ACROSS if entry["kind"] == "gauge" else (None,)):
            raise EffectError(f"metrics.toml: {name} combines processes by {across}; gauges by one of {ACROSS}")
        found.append(Metric(name, entry["doc"], entry["kind"], entry["unit"], tuple(entry["labels"]), across))
    return tuple(found)


def _table(file: str, key: str) -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((SCHEMAS / file).read_text(encoding="utf-8"))[key]
    return table


def _effect(name: str, entry: dict[str, Any]) -> Effect:
    wanted = {"doc", "operations", "capability", "classes", "fixed", "arguments", "gives", "fails"}
    if set(entry) != wanted:
        raise EffectError(f"effects.toml: {name} has {sorted(set(entry) ^ wanted)} too much or too little")
    arguments = tuple(
        Argument(argument, form["type"], form.get("optional", False)) for argument, form in entry["arguments"].items()
    )
    lists = {key: tuple(entry[key]) for key in ("operations", "classes", "fixed", "fails")}
    return Effect(
        name, entry["doc"], capability=entry["capability"], arguments=arguments, gives=entry["gives"], **lists
    )
