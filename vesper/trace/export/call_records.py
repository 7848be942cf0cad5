"""Records of model calls and agent calls in a trace: tokens, cost, latency, status and retries.

A record holds numbers and names and no value of the conversation: it may leave where values may not. The cost of a call
is what its budgets settle: that of the answer, and the most that failed attempts and failed models of its fallback list
may have cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal

from vesper.engines.outcome import Returned
from vesper.host.plans import Plans, plans_of
from vesper.storage.write_file import create_text
from vesper.trace.export.span_ids import otlp_trace_id, span_id
from vesper.trace.model import Exchange, Trace
from vesper.trace.programs import compiled_of
from vesper.values.json_value import Json, canonical_text, json_of, plain_json

MODEL_CALL: Final = "model_call"
FIELDS: Final = (
    *("trace_id", "span_id", "parent_span", "agent", "model", "input_tokens", "output_tokens", "cost_usd"),
    *("latency_ms", "status", "retries"),
)


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call of a model, or of an agent with the sum of its model calls."""

    kind: Literal["model", "agent"]
    trace_id: str
    span_id: str
    parent_span: str | None
    """None for the run itself."""
    agent: str
    """The node that makes the call, or that is called."""
    model: str
    """The model as its provider names it; of an agent all of its models, with commas."""
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal
    latency_ms: int
    status: str
    """`ok`, or the code of the failure; of a run another kind of outcome, of a called agent that of its last call."""
    retries: int
    path: str
    started_us: int
    configured_model: str = ""
    """The name of the model in the configuration."""
    stop: str = ""

    def members(self) -> dict[str, Any]:
        """Return the record in the fields of the founding document."""
        return {name: getattr(self, name) for name in FIELDS}


def call_records(trace: Trace) -> list[CallRecord]:
    """Return the records of a trace: the run, agents in it, and model calls; empty where no model was asked."""
    asked = [each for each in trace.exchanges if each.effect == MODEL_CALL]
    if not asked:
        return []
    plans = plans_of(compiled_of(trace.definition))
    trace_id = otlp_trace_id(trace.trace_id)
    calls = [_model_record(trace_id, plans, each, trace.started_us) for each in asked]
    prefixes = dict.fromkeys(_prefix(each.path) for each in calls)
    known = ("", *filter(None, prefixes))
    agents = [_agent_record(trace, trace_id, prefix, known, calls, asked) for prefix in known]
    return [*agents, *calls]


def _prefix(path: str) -> str:
    """Return the path of the step that calls the node of a request; empty for the run's own."""
    return path.rpartition("/")[0]


def agent_span(trace_id: str, prefix: str) -> str:
    return span_id(trace_id, f"{prefix}/" if prefix else "")


def _model_record(trace_id: str, plans: Plans, exchange: Exchange, started_us: int) -> CallRecord:
    given = plain_json(exchange.value) if isinstance(exchange.value, Json) else exchange.value
    answer: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    usage = answer.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    failed = answer.get("failed")
    worst = [Decimal(str(each.get("worst_cost_usd") or 0)) for each in failed or () if isinstance(each, Mapping)]
    charged = [each.said for each in exchange.decisions if each.said.get("decision") == "charged_at_worst"]
    worst += [Decimal(str(each["cost_usd"])) for each in charged]
    took_ms = (exchange.took_us or 0) // 1000
    return CallRecord(
        "model",
        trace_id,
        span_id(trace_id, exchange.path),
        agent_span(trace_id, _prefix(exchange.path)),
        plans.of(exchange.path).node_id,
        str(answer.get("model") or exchange.fixed.get("model", "")),
        sum((int(str(each["input_tokens"])) for each in charged), int(usage.get("input_tokens") or 0)),
        sum((int(str(each["output_tokens"])) for each in charged), int(usage.get("output_tokens") or 0)),
        sum(worst, Decimal(str(answer.get("cost_usd") or 0))),
        int(answer.get("latency_ms") or took_ms),
        exchange.failure or "ok",
        max(int(answer.get("retries") or 0), exchange.attempts - 1),
        exchange.path,
        started_us if exchange.asked_us is None else exchange.asked_us,
        exchange.fixed.get("model", ""),
        str(answer.get("stop") or ""),
    )


def _agent_record(
    trace: Trace, trace_id: str, prefix: str, known: Sequence[str], calls: list[CallRecord], asked: list[Exchange]
) -> CallRecord:
    own = [each for each in calls if not prefix or each.path.startswith(f"{prefix}/")]
    ends = [each.answered_us or 0 for each in asked if not prefix or each.path.startswith(f"{prefix}/")]
    started = trace.started_us if not prefix else min(each.started_us for each in own)
    took = (trace.duration_us or 0) if not prefix else max(0, max(ends) - started)
    status = "ok" if trace.outcome is None or isinstance(trace.outcome, Returned) else trace.outcome.kind
    return CallRecord(
        "agent",
        trace_id,
        agent_span(trace_id, prefix),
        None if not prefix else agent_span(trace_id, _around(prefix, known)),
        trace.node_id if not prefix else next(each.agent for each in own if _prefix(each.path) == prefix),
        ",".join(dict.fromkeys(each.model for each in own)),
        sum(each.input_tokens for each in own),
        sum(each.output_tokens for each in own),
        sum((each.cost_usd for each in own), Decimal(0)),
        took // 1000,
        status if not prefix else own[-1].status,
        sum(each.retries for each in own),
        prefix,
        started,
    )


def _around(prefix: str, known: Sequence[str]) -> str:
    """Return the innermost agent that calls the agent at a prefix."""
    return max((each for each in known if not each or prefix.startswith(f"{each}/")), key=len)


def gen_ai_attributes(record: CallRecord) -> dict[str, object]:
    """Return the attributes of a span by the conventions of OpenTelemetry for generative AI."""
    found: dict[str, object] = {
        "gen_ai.operation.name": "chat" if record.kind == "model" else "invoke_agent",
        "gen_ai.agent.name": record.agent,
        "gen_ai.usage.input_tokens": record.input_tokens,
        "gen_ai.usage.output_tokens": record.output_tokens,
        "sir.cost_usd": format(record.cost_usd, "f"),
        "sir.retries": record.retries,
    }
    if record.kind == "model":
        found["gen_ai.request.model"] = record.configured_model
        found["gen_ai.response.model"] = record.model
        if record.stop:
            found["gen_ai.response.finish_reasons"] = record.stop
        if record.status != "ok":
            found["error.type"] = record.status
    return found


def span_name(record: CallRecord) -> str:
    return f"chat {record.model}" if record.kind == "model" else f"invoke_agent {record.agent}"


# -- exports --------------------------------------------------------------------------------------


def json_lines(traces: Iterable[Trace]) -> str:
    """Return one line of JSON for each record; the cost is a number with all its digits."""
    return "".join(f"{canonical_text(json_of(each.members()))}\n" for each in _all(traces))


def write_sqlite(traces: Iterable[Trace], path: Path) -> int:
    """Write the records to the table `calls` of a new file of SQLite; return their number. Raises `FileExistsError`."""
    import sqlite3
    from contextlib import closing

    create_text(path, "", is_private=True)
    rows = [tuple(_column(value) for value in each.members().values()) for each in _all(traces)]
    with closing(sqlite3.connect(path)) as connection, connection:
        kinds = {"input_tokens": "INTEGER", "output_tokens": "INTEGER", "latency_ms": "INTEGER", "retries": "INTEGER"}
        columns = ", ".join(f"{name} {kinds.get(name, 'TEXT')}" for name in FIELDS)
        connection.execute(f"CREATE TABLE calls ({columns})")
        places = ", ".join("?" * len(FIELDS))
        connection.executemany(f"INSERT INTO calls VALUES ({places})", rows)  # noqa: S608
    return len(rows)


def _column(value: object) -> object:
    return format(value, "f") if isinstance(value, Decimal) else value


def _all(traces: Iterable[Trace]) -> Iterator[CallRecord]:
    for trace in traces:
        yield from call_records(trace)
