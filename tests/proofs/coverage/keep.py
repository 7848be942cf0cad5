"""Programs that are kept: those that reach an edge which nothing kept reaches, chosen, reduced and written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.proofs.coverage.edges import Counters
from tests.proofs.coverage.report import EdgeMap
from vesper.verify.differential.forms import COMPARED
from vesper.verify.variants.campaign import INPUTS_PER_KEPT, examine_text
from vesper.verify.variants.reduce import reduce_document

MAX_KEPT = 300


@dataclass(frozen=True, slots=True)
class Candidate:
    """A program with the edges that it takes."""

    name: str
    text: str
    """Empty for one that cannot be kept."""
    seed: int
    edges: int


def choose(candidates: Iterable[Candidate], known: int) -> list[Candidate]:
    """Return programs that together reach all that the candidates reach beyond `known`, most edges per byte first."""
    left = {each.name: each for each in candidates if each.edges & ~known}
    chosen = []
    while left:
        gains = {name: (each.edges & ~known).bit_count() / len(each.text) for name, each in left.items()}
        name = max(sorted(gains), key=gains.__getitem__)
        best = left.pop(name)
        chosen.append(best)
        known |= best.edges
        left = {name: each for name, each in left.items() if each.edges & ~known}
    return chosen


def kept_edges(text: str, name: str, seed: int) -> int | None:
    """Run a program in this process and return the edges that it takes; None if something is wrong with it."""
    counters = Counters()
    counters.take()
    failure = examine_text(text, name, COMPARED, seed, INPUTS_PER_KEPT)
    return counters.take() if failure is None else None


def keep(chosen: Iterable[Candidate], known: int, edges: EdgeMap, folder: Path, tries: int) -> int:
    """Reduce the chosen programs and write them to the folder; return how many."""
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for each in chosen:
        if len(list(folder.glob("*.vsp"))) >= MAX_KEPT:
            break
        needed = each.edges & edges.ours & ~known
        again = kept_edges(each.text, each.name, each.seed)
        # An edge that depends on what ran before in the process is no property of the program.
        needed &= again or 0
        if not needed:
            continue
        text = reduce_kept(each, needed, tries)
        reached = kept_edges(text, each.name, each.seed) or 0
        known |= reached & edges.ours
        (folder / f"{each.name}.vsp").write_text(with_intent(text, edges.functions(needed)), encoding="utf-8")
        written += 1
        print(f"kept {each.name}: {needed.bit_count()} edges, {len(text)} of {len(each.text)} bytes", flush=True)
    return written


def reduce_kept(candidate: Candidate, needed: int, tries: int) -> str:
    """Return a smaller text that still reaches the edges."""

    def reaches(text: str) -> bool:
        taken = kept_edges(text, candidate.name, candidate.seed)
        return taken is not None and not needed & ~taken

    return reduce_document(candidate.text, candidate.name, reaches, tries)


def with_intent(text: str, functions: set[str]) -> str:
    """Return the text with an intent that names some of the functions it was kept for."""
    shown = sorted(functions)[:3]
    named = ", ".join(shown) + (f" and {len(functions) - len(shown)} more" if len(functions) > len(shown) else "")
    lines = text.splitlines(keepends=True)
    place = next(index for index, line in enumerate(lines) if line.startswith("intent:"))
    return "".join([*lines[:place], f'intent: "Reach {named}"\n', *lines[place + 1 :]])
