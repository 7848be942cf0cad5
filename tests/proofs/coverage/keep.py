"""Programs that are kept: those that reach an edge which nothing kept reaches, chosen, reduced and written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.proofs.coverage.edges import Counters
from tests.proofs.coverage.report import EdgeMap
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.differential.forms import COMPARED
from vesper.verify.programs.campaign import examine_text
from vesper.verify.variants.campaign import INPUTS_PER_KEPT
from vesper.verify.variants.reduce import reduce_document

MAX_KEPT = 200


@dataclass(frozen=True, slots=True)
class Candidate:
    """A program with the edges that it takes."""

    name: str
    text: str
    """Empty for one that cannot be kept."""
    seed: int
    edges: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """A program to keep, and the edges that it is kept for."""

    candidate: Candidate
    needed: int


def choose(candidates: Iterable[Candidate], known: int) -> list[Chosen]:
    """Return programs that together reach all that the candidates reach beyond `known`, most edges per byte first."""
    left = {each.name: each for each in candidates if each.edges & ~known}
    chosen = []
    while left:
        gains = {name: (each.edges & ~known).bit_count() / len(each.text) for name, each in left.items()}
        best = left.pop(max(sorted(gains), key=gains.__getitem__))
        needed = best.edges & ~known
        chosen.append(Chosen(best, needed))
        known |= needed
        left = {name: each for name, each in left.items() if each.edges & ~known}
    return chosen


def kept_edges(text: str, name: str, seed: int, edges: EdgeMap) -> int | None:
    """Run a program in this process and return the edges that it takes; None if something is wrong with it."""
    counters = Counters()
    counters.take()
    failure = examine_text(SourceFile(f"{name}.vsp", text), COMPARED, seed, INPUTS_PER_KEPT)
    return edges.merge(counters.take()) if failure is None else None


def reduce_kept(chosen: Chosen, edges: EdgeMap, tries: int) -> str | None:
    """Return a smaller text that still reaches the edges; None if they depend on what ran before in the process."""
    each = chosen.candidate
    needed = chosen.needed & (kept_edges(each.text, each.name, each.seed, edges) or 0)
    if not needed:
        return None

    def reaches(text: str) -> bool:
        taken = kept_edges(text, each.name, each.seed, edges)
        return taken is not None and not needed & ~taken

    text = reduce_document(each.text, each.name, reaches, tries)
    return with_intent(text, edges.functions(needed))


def with_intent(text: str, functions: set[str]) -> str:
    """Return the text with an intent that names some of the functions it was kept for."""
    shown = sorted(functions)[:3]
    named = ", ".join(shown) + (f" and {len(functions) - len(shown)} more" if len(functions) > len(shown) else "")
    lines = text.splitlines(keepends=True)
    place = next(index for index, line in enumerate(lines) if line.startswith("intent:"))
    return "".join([*lines[:place], f'intent: "Reach {named}"\n', *lines[place + 1 :]])
