"""`make proof-coverage`: the edges of the direct engine that nodes, kept and random programs and variants reach.

The extension is built with a counter at every edge (`build.py`), beside a copy of the package. Nodes are verified
first, then the kept programs, random programs, and variants of nodes. A program that reaches an edge which neither a
node nor a kept program reaches is reduced and kept in `tests/conformance/programs`. The listing of unreached places
goes to `.proofs/coverage/unreached.txt`; a whole run writes `docs/proofs/coverage.json`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
if "--inside" not in sys.argv:  # there PYTHONPATH names the copy of the package, and then this folder
    sys.path.insert(0, str(ROOT))

from tests.proofs.coverage.build import PACKAGE, WORK, build, extension  # noqa: E402  # after the path is set
from tests.proofs.coverage.edges import Counters, read_places  # noqa: E402
from tests.proofs.coverage.keep import MAX_KEPT, Candidate, Chosen, choose, reduce_kept  # noqa: E402
from tests.proofs.coverage.report import EdgeMap, read_unreachable  # noqa: E402
from tests.proofs.robustness.proof import engine_hash, write_proof  # noqa: E402
from tests.support.nodes import worked_nodes  # noqa: E402

NAME = "coverage"
SEED = 20_261
NODE_INPUTS = 100
PROGRAMS = 600
VARIANTS = 300
CORPUS = ROOT / "tests" / "conformance" / "programs"
LISTING = WORK / "unreached.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--node-inputs", type=int, default=NODE_INPUTS, help="drawn inputs of each node")
    parser.add_argument("--programs", type=int, default=PROGRAMS, help="random programs")
    parser.add_argument("--variants", type=int, default=VARIANTS, help="variants of nodes")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--tries", type=int, default=120, help="candidates for the reduction of one kept program")
    parser.add_argument("--keep", type=int, default=60, help="programs to keep at most in this run")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        sys.exit(campaign(options))
    build()
    environment = {**os.environ, "PYTHONPATH": f"{PACKAGE}{os.pathsep}{ROOT}", "PYTHONHASHSEED": "0"}
    os.execve(sys.executable, [sys.executable, __file__, "--inside", *sys.argv[1:]], environment)


@dataclass(frozen=True, slots=True)
class Stage:
    """Work that is divided among processes; each item is measured on its own."""

    name: str
    items: Sequence[Any]
    measure: Callable[[Any], tuple[str, str, int]]
    """Runs an item; returns its name, its text if it may be kept, and the seed of its inputs."""


def run_stage(stage: Stage, processes: int) -> Iterator[Candidate]:
    """Run the items of a stage and yield each with the edges that it took."""
    context = multiprocessing.get_context("fork")
    with context.Pool(processes, initializer=_clear) as pool:
        yield from pool.imap(partial(_measure_item, stage.measure), stage.items, chunksize=4)


def _clear() -> None:
    Counters().take()


def _measure_item(measure: Callable[[Any], tuple[str, str, int]], item: Any) -> Candidate:
    counters = Counters()
    counters.take()
    name, text, seed = measure(item)
    return Candidate(name, text, seed, counters.take())


def verify_node(item: tuple[str, int, int]) -> tuple[str, str, int]:
    """Verify one node as the command does."""
    from vesper.compiler import compile_file
    from vesper.verify.differential.forms import COMPARED
    from vesper.verify.differential.verifier import Verifier

    path, inputs, seed = item
    compiled, _ = compile_file(Path(path))
    assert compiled is not None, path
    report = Verifier(compiled, COMPARED, seed).run(inputs)
    if report.differences:
        print(f"the engines differ on {path}: {report.differences[0].inputs}", file=sys.stderr)
    return Path(path).stem, "", seed


def run_text(item: tuple[str, str, int]) -> tuple[str, str, int]:
    """Run one program or variant; a text that the checker refuses reaches nothing."""
    from vesper.language.diagnostics.source import SourceFile
    from vesper.verify.differential.forms import COMPARED
    from vesper.verify.programs.campaign import examine_text
    from vesper.verify.variants.campaign import INPUTS_PER_KEPT

    name, text, seed = item
    failure = examine_text(SourceFile(f"{name}.vsp", text), COMPARED, seed, INPUTS_PER_KEPT)
    if failure is not None and failure.kind != "refused":
        found = WORK / "found" / f"{name}.vsp"
        found.parent.mkdir(exist_ok=True)
        found.write_text(text, encoding="utf-8")
        print(f"{name}: {failure.kind}, in {found}\n{failure.detail}{failure.difference}", file=sys.stderr)
    return name, text if failure is None else "", seed


def draw_and_run(item: tuple[str, int]) -> tuple[str, str, int]:
    from vesper.verify.programs.nodes import draw_program
    from vesper.verify.variants.draw import draw_variant

    kind, seed = item
    text = draw_program(seed).text() if kind == "program" else draw_variant(node_texts(), seed)
    return run_text((f"{kind}_{seed}_v1", text, seed))


@cache
def node_texts() -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8") for path in worked_nodes())


def stages(options: argparse.Namespace) -> list[Stage]:
    from vesper.verify.corpus import kept_programs
    from vesper.verify.programs.campaign import program_seeds

    nodes = [(str(path), options.node_inputs, options.seed) for path in worked_nodes()]
    kept = [(each.path.stem, each.text, each.seed) for each in kept_programs(CORPUS)]
    programs = [("program", seed) for seed in program_seeds(options.seed, options.programs)]
    variants = [("variant", seed) for seed in program_seeds(options.seed, options.variants)]
    return [
        Stage("nodes", nodes, verify_node),
        Stage("kept", kept, run_text),
        Stage("programs", programs, draw_and_run),
        Stage("variants", variants, draw_and_run),
    ]


def keep(chosen: Sequence[Chosen], edges: EdgeMap, tries: int, processes: int) -> int:
    """Reduce the chosen programs and write them to the corpus; return how many."""
    CORPUS.mkdir(parents=True, exist_ok=True)
    room = MAX_KEPT - len(list(CORPUS.glob("*.vsp")))
    written = 0
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        reduced = pool.imap(partial(reduce_kept, edges=edges, tries=tries), chosen[:room])
        for each, text in zip(chosen, reduced, strict=False):
            if text is not None:
                (CORPUS / f"{each.candidate.name}.vsp").write_text(text, encoding="utf-8")
                written += 1
                sizes = f"{len(text)} of {len(each.candidate.text)} bytes"
                print(f"kept {each.candidate.name}: {each.needed.bit_count()} edges, {sizes}", flush=True)
    return written


@dataclass(slots=True)
class Measured:
    """What the stages reached."""

    reached: int
    known: int = 0
    """Edges that nodes and kept programs reach."""
    new: list[Candidate] = field(default_factory=list)
    """Programs and variants that reach others."""
    refused: int = 0
    """Variants that the checker refused."""
    by_stage: dict[str, dict[str, int]] = field(default_factory=dict)


def measure(options: argparse.Namespace, edges: EdgeMap, reached: int) -> Measured:
    """Run the stages, each after the one before, and write the listing after each."""
    begun = time.monotonic()
    found = Measured(reached)
    for stage in stages(options):
        is_drawn = stage.name in ("programs", "variants")
        for each in run_stage(stage, options.processes):
            taken = edges.merge(each.edges)
            found.reached |= taken
            if is_drawn and each.text and taken & ~found.known:
                found.new.append(Candidate(each.name, each.text, each.seed, taken))
            found.refused += stage.name == "variants" and not each.text
        if not is_drawn:
            found.known = found.reached
        found.by_stage[stage.name] = edges.reached_by_crate(found.reached)
        count = sum(found.by_stage[stage.name].values())
        print(f"{stage.name}: {count:,} edges, {time.monotonic() - begun:.0f} s", flush=True)
        LISTING.write_text(edges.listing(found.reached), encoding="utf-8")
    return found


def campaign(options: argparse.Namespace) -> int:
    import vesper

    assert Path(vesper.__file__).is_relative_to(PACKAGE), vesper.__file__
    import vesper.verify.differential.forms  # loads the extension

    begun = time.monotonic()
    counters = Counters()
    edges = EdgeMap(read_places(counters, extension()), read_unreachable())
    for entry in edges.unused:
        print(f"unreachable.toml: no function matches {entry}", file=sys.stderr)
    found = measure(options, edges, edges.merge(counters.take()))
    summary = {
        "source_hash": engine_hash(),
        "seed": options.seed,
        "node_inputs": options.node_inputs,
        "programs": options.programs,
        "variants": options.variants,
        "variants_refused": found.refused,
        "kept": len(list(CORPUS.glob("*.vsp"))),
        "crates": edges.shares(found.reached),
        "reached_after": found.by_stage,
        "elapsed_seconds": round(time.monotonic() - begun, 1),
    }
    print(json.dumps(summary, indent=2))
    is_whole = options.programs >= PROGRAMS and options.variants >= VARIANTS and options.node_inputs >= NODE_INPUTS
    if is_whole:
        write_proof(NAME, summary)
    chosen = choose(found.new, found.known)[: options.keep]
    print(f"kept {keep(chosen, edges, options.tries, options.processes)} programs")
    return 0 if not edges.unused else 1


if __name__ == "__main__":
    main()
