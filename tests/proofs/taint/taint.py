"""`make proof-taint`: what is shown of 200 random nodes does not depend on their sensitive data.

Each node is drawn with sensitive inputs and, where it has effects, sensitive answers, and runs twice through a real
Host and journal, on an engine in turn. The two runs differ only in sensitive data and take one path. Everything that
is shown without `--reveal` must then be equal, ids and times aside: audit lines, logs, the trace as text, JSON and
OTLP, the replay views, the journal, divergences, metric labels and messages. Where a released value differs, the same
node without the release must show no difference.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import PROOFS, whole_hash, write_json  # noqa: E402  # after the path is set
from vesper.api.explain import error_info  # noqa: E402
from vesper.cli.journal.text import show_json as journal_json  # noqa: E402
from vesper.cli.traces.text import show_json, show_lines  # noqa: E402
from vesper.compiler import Compiled, compile_source  # noqa: E402
from vesper.config.settings import config_from  # noqa: E402
from vesper.effects.performer import Ask, EffectFailed  # noqa: E402
from vesper.engines.engine import Completion, Done, Request  # noqa: E402
from vesper.engines.outcome import ContractBroken, DeclaredError, EngineFault, Failed, LimitHit, Returned, outcome_code  # noqa: E402
from vesper.engines.registry import ENGINES  # noqa: E402
from vesper.host.host import Host  # noqa: E402
from vesper.host.masking import Masks  # noqa: E402
from vesper.host.plans import plans_of  # noqa: E402
from vesper.language.diagnostics.source import SourceFile  # noqa: E402
from vesper.language.ir import nodes as ir  # noqa: E402
from vesper.language.ir.statements import all_statements  # noqa: E402
from vesper.migration.compare.comparator import kind_of  # noqa: E402
from vesper.migration.compare.divergence_record import divergence_of  # noqa: E402
from vesper.migration.compare.paths import PathNote, ending_of  # noqa: E402
from vesper.migration.compare.reports import Difference, Disagreement, Fault  # noqa: E402
from vesper.migration.compare.transcript import Transcript  # noqa: E402
from vesper.replay.text import outcome_line, step_lines, timeline_lines  # noqa: E402
from vesper.testing import Sources  # noqa: E402
from vesper.trace.export.otlp import otlp_document  # noqa: E402
from vesper.trace.journalled import trace_of_execution  # noqa: E402
from vesper.trace.masking import masked_trace  # noqa: E402
from vesper.trace.model import MarkKind, Trace  # noqa: E402
from vesper.trace.places import mark_places  # noqa: E402
from vesper.trace.timeline import timeline  # noqa: E402
from vesper.values.generated.effects import EFFECTS  # noqa: E402
from vesper.values.model import same  # noqa: E402
from vesper.values.types import BOOLEAN, DECIMAL, INTEGER, STRING  # noqa: E402
from vesper.verify.inputs.generator import InputGenerator  # noqa: E402
from vesper.verify.inputs.responses import GeneratedResponses, Responder, run_with  # noqa: E402
from vesper.verify.programs.nodes import draw_program  # noqa: E402
from vesper.verify.programs.text import Draft  # noqa: E402

NO_WAITS = Sources(wait_scale=0)
NAME = "taint"
NODES = 200
TRIES = 150
"""Drawn pairs of inputs per node, among which one must take the same path twice."""
_OF_ONE_RUN = (
    "at", "at_us", "started", "ended", "updated", "hash", "previous", "took_us", "duration_us", "head_hash", "digest",
)  # fmt: skip
"""Times and hashes of journal entries."""
_PRINTED = (INTEGER, DECIMAL, STRING, BOOLEAN)
_TIMES = re.compile(r'"(?:startTimeUnixNano|endTimeUnixNano|timeUnixNano)": "[0-9]+"')
_RETURNS = re.compile(r"^( +)returns: (?!\{)(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs of one node: their inputs, and the seeds of their sensitive answers."""

    compiled: Compiled
    inputs: tuple[dict[str, object], dict[str, object]]
    seed: str
    answers: tuple[str, str]


# -- drawing --------------------------------------------------------------------------------------


def draw_node(seed: int) -> Compiled | None:
    """Return a node with sensitive data, or None where the drawn one can have none."""
    draft = draw_program(seed)
    chance = random.Random(f"taint {seed}")
    names = [each.name for each in draft.inputs if each.name != "event_id"]
    if not names:
        return None
    hidden = chance.sample(names, chance.randint(1, max(1, len(names) - 1)))
    lines = [f"  sensitive_data: [{', '.join(hidden)}]", "  audit_level: detailed"]
    if chance.random() < 0.25:
        released = chance.choice([name for name, _ in draft.outputs])
        lines.append(f"  declassify: {{{released}: drawn}}")
    text = _with_flows(draft, _with_security(draft, lines), chance)
    if chance.random() < 0.5:
        head, flow, rest = text.partition("\nflow:\n")
        marked = head + flow + _RETURNS.sub(_sensitive_answer, rest)
        compiled, _ = compile_source(SourceFile(f"{draft.node_id}.vsp", marked), judge_contracts=False)
        if compiled is not None:
            return compiled
    compiled, bag = compile_source(SourceFile(f"{draft.node_id}.vsp", text), judge_contracts=False)
    assert compiled is not None, [each.headline for each in bag.sorted()]
    return compiled


def _with_security(draft: Draft, lines: list[str]) -> str:
    text = draft.text()
    if "\nsecurity:\n" in text:
        return text.replace("\nsecurity:\n", "\nsecurity:\n" + "\n".join(lines) + "\n", 1)
    return text + "security:\n" + "\n".join(lines) + "\n"


def _with_flows(draft: Draft, text: str, chance: random.Random) -> str:
    """Return the node with first steps that use inputs in a message, a record and a request."""
    scalars = [each.name for each in draft.inputs if each.type in _PRINTED and each.name != "event_id"]
    if not scalars:
        return text
    used = chance.sample(scalars, min(len(scalars), 2))
    told = " and ".join(f"{{{name}}}" for name in used)
    steps = [
        f"  - {{step: seen_note, operation: string_template, template: 'earns {told}'}}",
        f"  - {{step: seen_both, operation: compute, value: {{own: {used[0]}, other: {used[-1]}, note: seen_note}}}}",
    ]
    if "effect.call.score" in draft.capabilities:
        request = "{note: seen_note, both: seen_both, own: seen_both.own, plain: '1'}"
        steps.append(f"  - {{step: seen_ask, operation: custom, name: score, request: {request}, returns: string}}")
    if draft.error_codes and chance.random() < 0.3:
        error = f"{{error_code: {draft.error_codes[0]}, message: 'an income of {told}'}}"
        steps.append(f"  - {{operation: raise, when: length(seen_note) > 8, error: {error}}}")
    return text.replace("\nflow:\n", "\nflow:\n" + "\n".join(steps) + "\n", 1)


def _sensitive_answer(found: re.Match[str]) -> str:
    written = found[2] if found[2][0] in "'\"" else f"'{found[2]}'"
    return f"{found[1]}returns: {{type: {written}, sensitive: true}}"


class Answers:
    """Answers by seed and path; those of sensitive requests by the seed of the run, too. Arguments do not count."""

    def __init__(self, compiled: Compiled) -> None:
        self._drawn = GeneratedResponses(compiled)
        self._sensitive = {
            each.name for each in all_statements(compiled.node.body) if isinstance(each, ir.Request) and each.sensitive
        }

    def responder(self, seed: str, own: str) -> Responder:
        common, varied = self._drawn.responder(seed), self._drawn.responder(own)

        def respond(request: Request) -> Completion:
            drawn = replace(request, id=0)
            found = common(drawn)
            if request.path.partition("[")[0] in self._sensitive and found.failure is None:
                other = varied(drawn)
                found = found if other.failure is not None else other
            return replace(found, id=request.id)

        return respond

    def now(self, seed: str) -> datetime:
        return self._drawn.now(seed)


def path_of(compiled: Compiled, done: Done) -> object:
    """Return the path of an execution: marked expressions, conditions, requests, and how it ended."""
    kinds = mark_places(compiled.node)
    outcome = done.outcome
    marks = [
        (index, value if kinds[index].kind is not MarkKind.VALUE else None)
        for index, value in done.marks
        if index in kinds
    ]
    asked = [(each.path, each.effect) for each in done.requests]
    return marks, asked, ending_of(outcome)


def draw_pair(compiled: Compiled, seed: int) -> Pair | None:
    """Return two runs that take one path; among the drawn ones, one whose values differ on the way."""
    answers = Answers(compiled)
    program = ENGINES["python"].load(compiled)
    draw = InputGenerator(compiled.node, seed, seeks_boundaries=False)
    hidden = compiled.node.grants.sensitive
    best: Pair | None = None
    best_rank = -1
    for number in range(TRIES):
        first, other = draw.draw(), draw.draw()
        second = first | {name: other[name] for name in hidden if name in other}
        if number % 2:  # one value that differs a little keeps the path more often
            second = first | {name: second[name] for name in hidden[number // 2 % len(hidden) :][:1] if name in second}
        pair = Pair(compiled, (first, second), f"{seed} {number}", (f"{seed} a {number}", f"{seed} b {number}"))
        done = [
            run_with(program, inputs, answers.now(pair.seed), answers.responder(pair.seed, own))
            for inputs, own in zip(pair.inputs, pair.answers, strict=True)
        ]
        if any(isinstance(each.outcome, LimitHit | EngineFault) or _is_refused(each) for each in done):
            continue
        if path_of(compiled, done[0]) != path_of(compiled, done[1]) or all(
            same(first.get(name), second.get(name)) for name in hidden
        ):
            continue
        is_different = done[0].marks != done[1].marks or done[0].outcome != done[1].outcome
        rank = 2 * is_different + isinstance(done[0].outcome, Returned | DeclaredError)
        if rank > best_rank:
            best, best_rank = pair, rank
        if rank == 3:
            break
    return best


def _is_refused(done: Done) -> bool:
    return isinstance(done.outcome, Failed) and done.outcome.at is None


# -- running --------------------------------------------------------------------------------------


class Performing:
    """Performs every effect with drawn answers. The message of a failure repeats the request, as a server's may."""

    def __init__(self) -> None:
        self.respond: Responder | None = None

    def perform(self, ask: Ask) -> object:
        assert self.respond is not None
        request = Request(0, ask.path, ask.effect, ask.effect_class, dict(ask.fixed), ask.arguments, ask.key)
        found = self.respond(request)
        if found.failure is not None:
            raise EffectFailed(found.failure, f"no answer to {dict(ask.arguments)!r}, key {ask.key!r}")
        return found.result

    def probe(self, ask: Ask) -> object:
        raise AssertionError("nothing is recovered here")

    def close(self) -> None: ...


class Logs(logging.Handler):
    """Keeps every line of every logger of Vesper."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


def shown_of(host: Host, performer: Performing, pair: Pair, engine: str, which: int) -> tuple[dict[str, str], Trace]:
    """Run one of the pair, and return everything that is shown of it, by kind of view."""
    compiled, inputs = pair.compiled, pair.inputs[which]
    answers = Answers(compiled)
    performer.respond = answers.responder(pair.seed, pair.answers[which])
    prepared = host.prepare(compiled, ENGINES[engine].load(compiled), engine)
    prepared = replace(prepared, plans=replace(prepared.plans, writes=False))  # no power is lost here
    logs = Logs()
    logger = logging.getLogger("vesper")
    logger.addHandler(logs)
    lines_before = len(list(host.journal.audit_events()))
    try:
        ran = host.run(prepared, inputs, answers.now(pair.seed))
    finally:
        logger.removeHandler(logs)
    trace = trace_of_execution(host.journal, ran.execution)
    events = [
        {name: each[name] for name in ("action", "fields", "level", "node_id")}
        for each in list(host.journal.audit_events())[lines_before:]
    ]
    shown = {
        "audit": repr(events),
        "logs": "\n".join(logs.lines),
        **dict(_trace_views(trace)),
        "divergences": "\n".join(_divergences(compiled, trace)),
        "metric labels": f"{outcome_code(Masks(compiled).outcome(ran.outcome))} {ran.outcome.kind}",
        "journal": json.dumps(_without_times(journal_json(host.journal.read(ran.execution), reveals=False))),
    }
    if not isinstance(ran.outcome, Returned | DeclaredError):  # those two are the caller's own values
        shown["messages"] = error_info(compiled, ran.outcome, inputs).message
    return {kind: text.replace(ran.execution, "ID") for kind, text in shown.items()}, trace


def _trace_views(trace: Trace) -> Iterator[tuple[str, str]]:
    still = trace.without_times()
    masked = masked_trace(still)
    yield "trace", masked.to_bytes().decode()
    yield "trace as text", "\n".join(show_lines(still, reveals=False))
    yield "trace as JSON", json.dumps(show_json(still, reveals=False))
    yield "OTLP", _TIMES.sub("", json.dumps(otlp_document([still], "")))
    steps = [line for step in timeline(masked) for line in step_lines(masked, step)]
    yield "replay", "\n".join([*timeline_lines(masked), *steps, outcome_line(masked)])


def _divergences(compiled: Compiled, trace: Trace) -> Iterator[str]:
    """Return the records of a differing outcome, of a differing request and of a fault in this execution."""
    assert trace.outcome is not None
    transcript = Transcript(trace.inputs, trace.now, (), trace.outcome)
    ended = kind_of(compiled.node, trace.outcome)
    note = PathNote(b"", (), ending_of(trace.outcome))
    other = ContractBroken("postcondition", 0, dict(trace.inputs))  # type: ignore[arg-type]  # values of an engine
    for difference in (Difference("outcome", "outcome", ended, "broken"), Difference("request", "step", ended, ended)):
        report = Disagreement(difference, note, 1, transcript, other, "ID")
        yield divergence_of(report, compiled, plans_of(compiled).is_sensitive, 0).to_text()
    fault = Fault(f"panicked: {dict(trace.inputs)!r}", transcript, "ID")
    yield divergence_of(fault, compiled, plans_of(compiled).is_sensitive, 0).to_text()


def _without_times(form: object) -> object:
    """Return JSON without the times and hashes of a journal, which differ between any two runs."""
    if isinstance(form, Mapping):
        return {name: _without_times(each) for name, each in form.items() if name not in _OF_ONE_RUN}
    if isinstance(form, list):
        return [_without_times(each) for each in form]
    return form


# -- the campaign ---------------------------------------------------------------------------------


def run_campaign(folder: Path, count: int, seed: int) -> dict[str, object]:
    performer = Performing()
    settings = {
        "grants": [{"nodes": ["*"], "allow": ["*"]}],
        "journal": {"dsn": f"sqlite:{folder / 'journal.db'}"},
        "recovery": {"enabled": False},
    }
    found: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    differing: list[str] = []
    drawn = seed * 1_000_000
    with Host(config_from(settings, folder), performers=dict.fromkeys(EFFECTS, performer), sources=NO_WAITS) as host:
        while found["nodes"] < count:
            drawn += 1
            compiled = draw_node(drawn)
            pair = None if compiled is None else draw_pair(compiled, drawn)
            if compiled is None or pair is None:
                found["drawn without a pair"] += 1
                continue
            engine = list(ENGINES)[found["nodes"] % len(ENGINES)]
            (left, one), (right, other) = (shown_of(host, performer, pair, engine, which) for which in (0, 1))
            found["nodes"] += 1
            found["with effects"] += not compiled.node.is_pure()
            found["with releases"] += bool(compiled.node.grants.declassified)
            found["with sensitive answers"] += plans_of(compiled).is_sensitive and len(
                compiled.node.taint.sources if compiled.node.taint else ()
            ) > len(compiled.node.inputs)
            outcomes[one.outcome.kind if one.outcome is not None else "none"] += 1
            values = (one.raw_marks(), one.outcome) != (other.raw_marks(), other.outcome)
            found["with values that differ behind masks"] += values
            found["views compared"] += len(left)
            masked = sum(text.count("<sensitive>") for text in left.values())
            found["masks shown"] += masked
            unequal = [kind for kind in left if left[kind] != right[kind]]
            if unequal and compiled.node.grants.declassified:
                # The same runs of the node without its release must be equal: then only the release shows.
                found["pairs in which a released value differs"] += 1
                closed = replace(pair, compiled=_without_release(compiled))
                (left, _), (right, _) = (shown_of(host, performer, closed, engine, which) for which in (0, 1))
                unequal = [kind for kind in left if left[kind] != right[kind]]
            if unequal:
                differing.append(f"{compiled.node.node_id} on {engine}: {', '.join(unequal)}")
    return {**dict(found), "outcomes": dict(sorted(outcomes.items())), "differing": differing}


def _without_release(compiled: Compiled) -> Compiled:
    text = re.sub(r"^  declassify: .*\n", "", compiled.source.text, flags=re.MULTILINE)
    found, _ = compile_source(SourceFile(compiled.source.path, text), judge_contracts=False)
    assert found is not None
    return found


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--nodes", type=int, default=NODES)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        found = run_campaign(Path(name), given.nodes, given.seed)
    proof = {
        "source_hash": whole_hash(), "seed": given.seed, **found, "is_right": not found["differing"],
        "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    print(json.dumps(proof, indent=2))
    if proof["is_right"] and given.nodes >= NODES:
        write_json(PROOFS / f"{NAME}.json", proof)
    return 0 if proof["is_right"] else 1


if __name__ == "__main__":
    sys.exit(main())
