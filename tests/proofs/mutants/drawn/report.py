"""Figures of the drawn mutants: shares that were noticed in time, by crate and by kind, and the survivors."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.proofs.mutants.drawn.draw import Mutant

EQUIVALENT = Path(__file__).parent / "equivalent.toml"
BARS = {"killed_60s": 0.80, "killed_600s": 0.93, "killed_all": 0.98}
CRATE_BAR = 0.90
EQUIVALENT_SHARE = 0.08
"""More equivalent mutants than that are a sign of judging too kindly."""

Result = dict[str, Any]


def equivalent_mutants() -> dict[str, str]:
    """Return the reasons of the mutants that change no answer, by name."""
    reasons: dict[str, str] = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["equivalent"]
    return reasons


def is_killed_within(result: Result, seconds: float) -> bool:
    found = result.get("verify")
    return found is not None and bool(found["seconds"] <= seconds)


def is_killed(result: Result) -> bool:
    return any(result.get(stage) is not None for stage in ("verify", "corpus", "tests"))


_KILLS: Mapping[str, Callable[[Result], bool]] = {
    "killed_60s": lambda result: is_killed_within(result, 60),
    "killed_600s": lambda result: is_killed_within(result, 600),
    "killed_all": is_killed,
}


def figures(mutants: Sequence[Mutant], results: Mapping[str, Result], equivalent: Mapping[str, str]) -> Result:
    """Return the shares of those that are not equivalent."""
    judged = [each for each in mutants if each.name in equivalent]
    real = [each for each in mutants if each.name not in equivalent]
    return {
        "drawn": len(mutants),
        "equivalent": len(judged),
        **{name: _share(real, results, is_one) for name, is_one in _KILLS.items()},
        "by_crate": _by(real, results, lambda each: each.crate),
        "by_kind": _by(real, results, lambda each: each.kind),
    }


def _share(real: Sequence[Mutant], results: Mapping[str, Result], is_one: Callable[[Result], bool]) -> float:
    return round(sum(is_one(results.get(each.name, {})) for each in real) / max(len(real), 1), 4)


def _by(real: Sequence[Mutant], results: Mapping[str, Result], key: Callable[[Mutant], str]) -> Result:
    groups: dict[str, list[Mutant]] = {}
    for each in real:
        groups.setdefault(key(each), []).append(each)
    return {
        name: {"mutants": len(own), **{kill: _share(own, results, is_one) for kill, is_one in _KILLS.items()}}
        for name, own in sorted(groups.items())
    }


def problems(mutants: Sequence[Mutant], results: Mapping[str, Result], equivalent: Mapping[str, str]) -> list[str]:
    """Return what keeps the figures from being a proof."""
    found = figures(mutants, results, equivalent)
    wrong = [
        f"{name} is {found[name]:.1%}, and {bar:.0%} is asked for" for name, bar in BARS.items() if found[name] < bar
    ]
    wrong += [
        f"of {crate} {own['killed_all']:.1%} are noticed, and {CRATE_BAR:.0%} are asked for"
        for crate, own in found["by_crate"].items()
        if own["killed_all"] < CRATE_BAR
    ]
    known = {each.name for each in mutants}
    wrong += [
        f"{name} is listed in {EQUIVALENT.name} and was noticed: take it out"
        for name in equivalent
        if name in known and is_killed(results.get(name, {}))
    ]
    if found["equivalent"] > EQUIVALENT_SHARE * max(len(mutants), 1):
        wrong.append(f"{found['equivalent']} are judged equivalent, and at most {EQUIVALENT_SHARE:.0%} may be")
    return wrong


def is_tried(result: Result) -> bool:
    """Return whether a mutant was noticed, or has lived through a batch."""
    return is_killed(result) or result.get("verified_seconds", 0.0) > 0


def survivors_text(mutants: Sequence[Mutant], results: Mapping[str, Result], equivalent: Mapping[str, str]) -> str:
    """Return the mutants that nodes and programs alone do not notice, with their lines, for a person to judge."""
    tried = [each for each in mutants if is_tried(results.get(each.name, {}))]
    found = figures(tried, results, equivalent)
    head = ", ".join(f"{name} {found[name]:.1%}" for name in _KILLS)
    parts = [f"# Survivors of {len(tried)} drawn mutants\n\n{head}; {found['equivalent']} judged equivalent."]
    parts.append(f"{len(mutants) - len(tried)} are not tried yet.\n")
    for crate in sorted({each.crate for each in tried}):
        own = [each for each in tried if each.crate == crate and results.get(each.name, {}).get("verify") is None]
        parts.append(f"## {crate}: {len(own)} of {sum(each.crate == crate for each in tried)}\n")
        for each in sorted(own, key=lambda one: (one.file, one.line)):
            result = results.get(each.name, {})
            standing = _standing(each, result, equivalent)
            parts.append(
                f"- `{each.name}` {each.file}:{each.line} `{each.function}` ({each.kind}); {standing}\n"
                f"  - before: `{each.before[:300]}`\n"
                f"  - after: `{each.after[:300]}`"
            )
        parts.append("")
    return "\n".join(parts)


def _standing(mutant: Mutant, result: Result, equivalent: Mapping[str, str]) -> str:
    if mutant.name in equivalent:
        return f"equivalent: {equivalent[mutant.name]}"
    for stage in ("corpus", "tests"):
        if result.get(stage) is not None:
            return f"noticed by {stage}: {result[stage]['what']}"
    reach = "" if result.get("is_reached", True) else ", its place is never reached"
    return f"SURVIVES{reach}, verified for {result.get('verified_seconds', 0):.0f} s"
