"""Tab Flow of a node: the drawing with evidence, and its paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from markupsafe import Markup

from vesper.compiler import Compiled
from vesper.dashboard.draw.flow import draw_flow
from vesper.dashboard.draw.flow.evidence import State, flow_evidence
from vesper.dashboard.draw.flow.parts import parts_of
from vesper.dashboard.page import Context, NotFound, Paging
from vesper.dashboard.pages.flow.download import compiled_node
from vesper.dashboard.problem import Unavailable
from vesper.dashboard.service import open_configured
from vesper.engines.path import Point
from vesper.language.ir.statements import all_statements
from vesper.migration.compare.path_words import path_words
from vesper.migration.compare.transcript import Transcript
from vesper.migration.router.points import PointsUnavailable, points_of_epoch
from vesper.migration.stores.configured import OpenStore, short_epoch
from vesper.migration.stores.overview import PathOverview, open_divergences, read_overview, read_paths
from vesper.migration.stores.reservoir import transcripts_of
from vesper.migration.stores.store import NodeKey
from vesper.values.model import printable, show

_MAX_EXEMPLAR = 600
_MAX_PATHS = 20
_OTHERS = (": no", " round", " rounds")


@dataclass(frozen=True, slots=True)
class PathRow:
    """A path with its evidence."""

    letter: str
    traffic: int
    """Distinct inputs of traffic that agreed."""
    generated: int
    is_proven: bool
    lacks: int
    """Agreeing runs that are missing."""
    divergences: tuple[str, ...]
    """Fingerprints of open divergences."""
    words: tuple[str, ...]
    """Conditions that hold, requests and ending."""
    others: tuple[str, ...]
    """Conditions that do not hold, and rounds of loops."""
    is_selected: bool


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A kept execution of the selected path."""

    inputs: tuple[tuple[str, str], ...]
    outcome: str


@dataclass(frozen=True, slots=True)
class FlowPage:
    node: str
    intent: str
    epoch: str | None
    note: str | None
    """Why there is no evidence."""
    svg: str
    statements: int
    states: dict[State, int]
    """Number of statements by state of evidence."""
    paths: tuple[PathRow, ...]
    """Those with the most evidence first, by page."""
    paging: Paging
    selected: str | None
    exemplar: Exemplar | None


@dataclass(frozen=True, slots=True)
class _NodeEvidence:
    """The evidence of a node in the epoch of its file."""

    opened: OpenStore
    key: NodeKey
    paths: Sequence[PathOverview]
    points: Sequence[Point]
    open: dict[str, tuple[str, ...]]
    """Fingerprints of open divergences by path."""


def read_flow(context: Context) -> FlowPage:
    """Return the drawing and the paths of a node."""
    compiled = compiled_node(context)
    node = compiled.node.node_id
    found, note = _find_evidence(context, compiled)
    wanted = context.text("path")
    selected = next((each for each in found.paths if each.letter == wanted), None) if found else None
    if wanted is not None and selected is None:
        raise NotFound(f"{node} has no path {printable(wanted)} with evidence", "Choose one of the table of paths.")
    evidence = None if found is None else flow_evidence(parts_of(compiled), found.points, found.paths)
    taken = None
    if evidence is not None and selected is not None:
        taken = next((each.ways for each in evidence.paths if each.letter == selected.letter), frozenset())
    paths = found.paths if found else ()
    first = (context.page_number() - 1) * _MAX_PATHS
    shown = paths[first : first + _MAX_PATHS]
    total = sum(1 for _ in all_statements(compiled.node.body))
    return FlowPage(
        node,
        compiled.node.source.intent,
        None if found is None else short_epoch(found.key.epoch),
        note,
        Markup(draw_flow(compiled, evidence, taken, f"/nodes/{quote(node, safe='')}/source")),  # escaped by its maker
        total,
        dict(Counter(evidence.of(("at", number, 0)).state for number in range(total))) if evidence else {},
        tuple(_row(each, compiled, found, each is selected) for each in shown) if found else (),
        context.paging(first + _MAX_PATHS < len(paths), len(paths)),
        None if selected is None else selected.letter,
        None if found is None or selected is None else _exemplar(found, selected),
    )


def _find_evidence(context: Context, compiled: Compiled) -> tuple[_NodeEvidence | None, str | None]:
    """Return the evidence in the epoch of the file, or why there is none."""
    node = compiled.node.node_id
    try:
        opened = open_configured(context.stores)
    except Unavailable as problem:
        return None, f"No evidence yet. {problem.remedy}"
    overview = read_overview(opened.store, opened.settings, True, node)
    why = f'No evidence yet: {node} was not routed. Load it with `vesper.load(NAME, engine="auto")` and call it.'
    for each in sorted(overview.nodes, key=lambda each: -each.written_us):
        if each.state is None:
            why = f"No evidence: {each.problem}"
            continue
        try:
            points = points_of_epoch(compiled, compiled.path, each.key.epoch, opened.migration.of(node).tolerances)
        except PointsUnavailable as problem:
            why = f"Evidence is not shown: {problem}."
            continue
        open_: dict[str, tuple[str, ...]] = {}
        for divergence in open_divergences(opened.store, each.state):
            open_[divergence.path] = (*open_.get(divergence.path, ()), divergence.fingerprint)
        return _NodeEvidence(opened, each.key, read_paths(opened.store, each.state), points, open_), None
    return None, printable(why)


def _row(path: PathOverview, compiled: Compiled, found: _NodeEvidence, is_selected: bool) -> PathRow:
    words = ["its description cannot be read"] if path.note is None else path_words(path.note, compiled, found.points)
    return PathRow(
        path.letter,
        path.seen.clean,
        path.seen.generated,
        path.is_proven,
        path.lacks,
        found.open.get(path.name, ()),
        tuple(each for each in words if not each.endswith(_OTHERS)),
        tuple(each for each in words if each.endswith(_OTHERS)),
        is_selected,
    )


def _exemplar(found: _NodeEvidence, path: PathOverview) -> Exemplar | None:
    """Return a kept execution of a path. Nothing is kept of a node with sensitive values."""
    kept = transcripts_of(found.opened.store, found.key, path.name)
    if not kept:
        return None
    transcript = Transcript.from_text(kept[min(kept)])
    inputs = tuple((name, _shorten(show(value))) for name, value in transcript.inputs.items())
    value = getattr(transcript.outcome, "value", None)
    outcome = transcript.outcome.kind if value is None else f"{transcript.outcome.kind} {show(value)}"
    return Exemplar(inputs, _shorten(outcome))


def _shorten(text: str) -> str:
    return printable(text if len(text) <= _MAX_EXEMPLAR else f"{text[:_MAX_EXEMPLAR]}…")
