"""`vesper run`."""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import click

from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.load_node import compile_or_exit, find_node, load_or_exit, nodes_option
from vesper.cli.number_ranges import FiniteRange
from vesper.cli.output.outcomes import json_text, outcome_json, outcome_lines
from vesper.compiler import Compiled
from vesper.engines.compare import same_outcome
from vesper.engines.engine import Limits, Program
from vesper.engines.outcome import Denied, EngineFault, Failed, LimitHit, Outcome, Returned
from vesper.engines.registry import ENGINES, PAIR, REFERENCE
from vesper.language.check.expressions.literals import value_from_text
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.values.generated.errors import ErrorCode
from vesper.values.inputs import accept_inputs
from vesper.values.json_forms import forms_of_json, input_of_json
from vesper.values.json_mistake import JsonMistake, place_at
from vesper.values.limits import DEFAULT_FUEL, MAX_FUEL
from vesper.values.model import Problem, ProblemKind, ValueProblem, plain, show
from vesper.values.types import TIMESTAMP, Enum, Primitive, Type, without_null

_TIMED_CALLS = 200


@click.command("run")
@click.argument("node")
@nodes_option
@click.option("--input", "-i", "pairs", multiple=True, metavar="NAME=VALUE", help="An input; give one for each.")
@click.option("--json", "json_file", type=click.File(encoding="utf-8"), help="All inputs as a JSON object; - is stdin.")
@click.option(
    "--engine",
    type=click.Choice([*ENGINES, "both", "auto"]),
    default=REFERENCE,
    show_default=True,
    help=f"Where to run it; `both` ({' and '.join(PAIR)}) also says whether they agree and how long each took, `auto` "
    "is as the mode of the node says (vesper status).",
)
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--now", "start", metavar="TIMESTAMP", help="When the execution starts; now, unless said.")
@click.option(
    "--fuel",
    type=click.IntRange(0, MAX_FUEL),
    metavar="UNITS",
    help=f"The most it may spend: items that loops take, rounds, called nodes. {DEFAULT_FUEL:,} unless said.",
)
@click.option("--seconds", type=FiniteRange(0, 1e9), metavar="S", help="How long it may compute; no limit unless said.")
@click.option("--case", "case_name", metavar="NAME", help="Run one of the node's cases, with its answers.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The vesper.toml for effects; the nearest upwards, unless said.",
)
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the run, with its requests and answers, into FILE as a test case.",
)
@click.option("--trace", "is_traced", is_flag=True, help="Keep a trace of the run, and print its id.")
@click.option(
    "--batch",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Run it on every row of a .parquet, .arrow, .csv or .jsonl file, on the direct engine.",
)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), metavar="OUT", help="Where --batch writes the answers."
)
@click.option("--resume", is_flag=True, help="Let a --batch that was stopped go on where it was.")
@click.option(
    "--threads", type=click.IntRange(1, 1_024), help="How many threads --batch runs on; one a processor unless said."
)
@click.option("--keep", multiple=True, metavar="COLUMN", help="A column of --batch that OUT has too; repeat for more.")
@click.option("--decimals", metavar="N|text", help="Digits after the point of decimals in OUT, or their texts.")
@click.pass_context
def command(
    context: click.Context,
    node: str,
    root: Path,
    pairs: tuple[str, ...],
    json_file: TextIO | None,
    engine: str,
    style: str,
    start: str | None,
    fuel: int | None,
    seconds: float | None,
    case_name: str | None,
    config: Path | None,
    record: Path | None,
    is_traced: bool,
    batch: Path | None,
    output: Path | None,
    resume: bool,
    threads: int | None,
    keep: tuple[str, ...],
    decimals: str | None,
) -> None:
    """Run a node and print its outcome.

    Effects are performed for real, as vesper.toml configures and grants them, and are journalled; with `--engine both`
    once, by the first engine, and the second is fed what the first was answered. With `--engine auto` the run is a
    request like those of a service: the mode of the node decides, and what comes of it is evidence.

    `--record` writes the run as a case that can be pasted into the node, or replayed (`vesper.testing.Replay`);
    sensitive inputs stand there in their shape alone, and secrets as `secret:NAME`. `--trace` prints the id of a trace
    (`vesper replay`).

    A scalar is written after its name as a node would write it (`-i amount=9.99`), a list, map or record as JSON
    (`-i 'tags=["a", "b"]'`). `--json` takes all inputs as one object; numbers in it are exact. What `--format json`
    prints under `value` is in the same form, so that outputs can be the inputs of another run.

    `--batch FILE -o OUT` runs it on every row of a file of a table. OUT has the outputs as columns, and a column
    `error` that is empty where a row has outputs. What was stopped goes on with `--resume`.

    Exit codes: 0 the node returned (or met its --case; with --batch, on every row), 1 it ended in any other way, or its
    inputs do not fit, 2 usage, 3 a bug in Vesper (an engine is at fault, or two engines disagree).
    """
    if batch is not None:
        from vesper.cli.run.batch import Asked, run_batch

        refuse_beside_batch(context)
        asked = Asked(batch, output, resume, threads, keep, decimals, start, fuel, seconds, engine, style)
        sys.exit(run_batch(find_node(node, root), asked))
    for name in ("output", "resume", "threads", "keep", "decimals"):
        if context.params[name]:
            raise click.UsageError(f"--{name} is for --batch FILE")
    compiled = compile_or_exit(find_node(node, root))
    limits = Limits(DEFAULT_FUEL if fuel is None else fuel, seconds)
    if engine == "auto":
        from vesper.cli.run.routed import refuse_beside_auto

        refuse_beside_auto(context)
        inputs, unread = read_inputs(compiled, pairs, json_file)
        now = read_start(start)
        if unread:
            sys.exit(print_refusal(compiled, [engine], inputs, unread, style))
        sys.exit(_run_routed(compiled, inputs, now, limits, config, style))
    names = list(PAIR) if engine == "both" else [engine]
    if case_name is not None:
        if pairs or json_file is not None or start is not None:
            raise click.UsageError("--case has inputs and a start of its own: leave --input, --json and --now away")
        if record is not None:
            raise click.UsageError("--case performs nothing that could be recorded: leave --record away")
        if is_traced:
            raise click.UsageError("--case runs on answers that the node has already: leave --trace away")
        programs = {name: load_or_exit(ENGINES[name], compiled) for name in names}
        sys.exit(_run_case(compiled, programs, case_name, style, limits))
    inputs, unread = read_inputs(compiled, pairs, json_file)
    now = read_start(start)
    if unread:
        sys.exit(print_refusal(compiled, names, inputs, unread, style))
    programs = {name: load_or_exit(ENGINES[name], compiled) for name in names}
    if not compiled.node.is_pure() or compiled.node.grants.audit != "none":
        sys.exit(_run_with_effects(compiled, programs, inputs, now, limits, config, style, record, is_traced))
    if record is not None:
        raise click.UsageError(f"{compiled.node.node_id} has no effects that could be recorded: leave --record away")
    trace_id = None
    if is_traced:
        from vesper.cli.run.traced import run_traced

        outcomes, trace_id = run_traced(compiled, programs, inputs, now, limits, config)
    else:
        outcomes = {name: program.call(inputs, now, limits) for name, program in programs.items()}
    if style == "json":
        _print_json(compiled, outcomes, trace_id)
    elif engine == "both":
        _print_both(compiled, programs, outcomes, inputs, now, limits)
    else:
        outcome = outcomes[engine]
        click.echo(_shown(compiled, outcome, inputs, limits), err=not isinstance(outcome, Returned))
    if style == "text" and trace_id is not None:
        click.echo(f"\ntrace {trace_id}")
    sys.exit(_exit_code(outcomes))


def _run_routed(
    compiled: Compiled,
    inputs: dict[str, object],
    now: datetime,
    limits: Limits,
    config: Path | None,
    style: str,
) -> int:
    """As a service runs it. What is compared is compared before the command ends, so that it can say so."""
    from vesper.cli.run.routed import AUTO, routed

    execution: str | None = None
    why: tuple[str, ...] = ()
    with routed(compiled, config) as run:
        if compiled.node.is_pure() and compiled.node.grants.audit == "none":
            outcome = run.program.call(inputs, now, limits)
        else:
            from vesper.cli.run.hosted import run_hosted

            ran = run_hosted(compiled, {AUTO: run.program}, inputs, now, limits, config)
            outcome, execution, why = ran.outcome, ran.execution, ran.why
    if style == "json":
        document = _document(compiled, {AUTO: outcome}, why)
        document |= {"mode": run.mode.value, "divergences": run.divergences}
        click.echo(json_text(document if execution is None else {**document, "execution": execution}))
    else:
        is_error = not isinstance(outcome, Returned)
        click.echo(_shown(compiled, outcome, inputs, limits, why), err=is_error)
        click.echo("\n" + run.text, err=is_error)
        if execution is not None:
            click.echo(f"execution {execution}", err=is_error)
        for each in run.divergences:
            click.echo(f"THE ENGINES DISAGREE: `vesper divergences show {each}`", err=True)
    return OUR_BUG if run.divergences else _exit_code({AUTO: outcome})


def refuse_beside_batch(context: click.Context) -> None:
    """A batch has its inputs in a file, and nobody watches its rows."""
    for name, option in {
        "pairs": "--input",
        "json_file": "--json",
        "case_name": "--case",
        "record": "--record",
        "is_traced": "--trace",
        "config": "--config",
    }.items():
        if context.params[name]:
            raise click.UsageError(f"--batch does not go with {option}: leave one of them away")
    source = context.get_parameter_source("engine")
    if source is not click.core.ParameterSource.DEFAULT and context.params["engine"] in (REFERENCE, "both", "auto"):
        raise click.UsageError("--batch runs on the direct engine: leave --engine away, or say --engine interp")


def read_start(text: str | None) -> datetime:
    if text is None:
        return datetime.now(UTC)
    try:
        value = value_from_text(TIMESTAMP, text)
    except ValueProblem as problem:
        raise click.UsageError(f"--now {text}: {problem.kind.value}; write 2026-11-15T12:00:00Z") from None
    assert isinstance(value, datetime)
    return value


def _run_with_effects(
    compiled: Compiled,
    programs: Mapping[str, Program],
    inputs: dict[str, object],
    now: datetime,
    limits: Limits,
    config: Path | None,
    style: str,
    record: Path | None,
    is_traced: bool,
) -> int:
    from vesper.cli.run.hosted import run_hosted

    ran = run_hosted(compiled, programs, inputs, now, limits, config, record)
    leader = next(iter(programs))
    difference = next((each.difference for each in ran.followed.values() if each.difference), None)
    if style == "json":
        document = _document(compiled, {leader: ran.outcome}, ran.why)
        document["execution"] = ran.execution
        if is_traced:
            document["trace_id"] = ran.trace_id
        if ran.followed:
            document["agree"] = difference is None
        if record is not None:
            document["recorded"] = ran.not_recorded is None
        click.echo(json_text(document))
    else:
        click.echo(_shown(compiled, ran.outcome, inputs, limits, ran.why), err=not isinstance(ran.outcome, Returned))
        click.echo(f"\nexecution {ran.execution}", err=not isinstance(ran.outcome, Returned))
        if ran.trace_id is not None and not isinstance(ran.outcome, Returned | Denied):
            click.echo(f"`vesper journal show {ran.execution[:18]}` shows what it asked for and what came", err=True)
        if is_traced and ran.trace_id is not None:
            click.echo(f"trace {ran.trace_id}")
        elif is_traced:
            click.echo("the node never began, so there is no trace", err=True)
        for name, followed in ran.followed.items():
            said = (
                f"{name} agrees with {leader}, on the records" if followed.difference is None else followed.difference
            )
            click.echo(said if followed.difference is None else f"THE ENGINES DISAGREE: {name}: {said}")
    if record is not None and ran.not_recorded is not None:
        click.echo(f"error: not recorded: {ran.not_recorded}", err=True)
    elif record is not None and style == "text":
        click.echo(f"recorded in {record}", err=not isinstance(ran.outcome, Returned))
    if difference:
        return OUR_BUG
    return WRONG_INPUT if ran.not_recorded is not None else _exit_code({leader: ran.outcome})


def _run_case(compiled: Compiled, programs: Mapping[str, Program], wanted: str, style: str, limits: Limits) -> int:
    """One of the node's own cases: what is asked for, what it is answered, and how it ends."""
    from vesper.verify.differential.verifier import meets
    from vesper.verify.inputs.responses import UnexpectedRequest, run_case

    case = next((each for each in compiled.cases if each.name == wanted), None)
    if case is None:
        names = [each.name for each in compiled.cases]
        hint = did_you_mean(wanted, names) or (f"the cases are {', '.join(names)}" if names else "it has no cases")
        raise click.UsageError(f"{compiled.node.node_id} has no case `{wanted}`; {hint}")
    outcomes: dict[str, Outcome] = {}
    asked: list[str] = []
    for name, program in programs.items():
        try:
            done = run_case(program, case, limits)
        except UnexpectedRequest as problem:
            click.echo(f"{name}: case `{case.name}`: {problem}", err=True)
            return WRONG_INPUT
        outcomes[name] = done.outcome
        asked = [f"{each.path}  {each.effect} {show(dict(each.arguments))}" for each in done.requests]
    if style == "json":
        _print_json(compiled, outcomes)
    else:
        for number, line in enumerate(asked, start=1):
            click.echo(f"{number}. {line}")
        for name, outcome in outcomes.items():
            click.echo(("" if len(outcomes) == 1 else f"{name}:\n") + _shown(compiled, outcome, case.inputs, limits))
    if not _agree(outcomes) or any(isinstance(outcome, EngineFault) for outcome in outcomes.values()):
        return OUR_BUG
    if not all(meets(case, outcome) for outcome in outcomes.values()):
        click.echo(f"this is not what the case `{case.name}` expects", err=True)
        return WRONG_INPUT
    return FINE


def _has_run_out_of_time(outcomes: Mapping[str, Outcome]) -> bool:
    """When that is differs from run to run, so such outcomes say nothing about the engines."""
    return any(isinstance(outcome, LimitHit) and outcome.limit != "fuel" for outcome in outcomes.values())


def _agree(outcomes: Mapping[str, Outcome]) -> bool:
    first, *others = outcomes.values()
    return _has_run_out_of_time(outcomes) or all(same_outcome(first, other) for other in others)


def _exit_code(outcomes: Mapping[str, Outcome]) -> int:
    if not _agree(outcomes) or any(isinstance(outcome, EngineFault) for outcome in outcomes.values()):
        return OUR_BUG
    return FINE if all(isinstance(outcome, Returned) for outcome in outcomes.values()) else WRONG_INPUT


# -- inputs ---------------------------------------------------------------------------------------


def read_inputs(
    compiled: Compiled, pairs: tuple[str, ...], json_file: TextIO | None
) -> tuple[dict[str, object], dict[str, ProblemKind]]:
    """What the command line gives, and why the text of some `--input` is no value of its type.

    A name that the node does not have is kept as it is: it is refused with all the rest that does not fit.
    """
    types = {each.name: each.type for each in compiled.node.inputs}
    inputs: dict[str, object] = {} if json_file is None else _from_json(json_file, types)
    unread: dict[str, ProblemKind] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--input {pair}: write NAME=VALUE")
        if name in inputs:
            raise click.UsageError(f"--input {pair}: `{name}` is given twice")
        inputs[name] = text
        if name in types:
            try:
                inputs[name] = _from_text(types[name], text)
            except ValueProblem as problem:
                unread[name] = problem.kind
    return inputs, unread


def print_refusal(
    compiled: Compiled, names: list[str], inputs: dict[str, object], unread: dict[str, ProblemKind], style: str
) -> int:
    """Every problem in one list: the texts that are no values, and what any engine would say of the rest."""
    declared = [(each.name, each.type, each.default) for each in compiled.node.inputs if each.name not in unread]
    _, others = accept_inputs(declared, {name: each for name, each in inputs.items() if name not in unread})
    order = [each.name for each in compiled.node.inputs]
    found = [*(Problem(name, kind) for name, kind in unread.items()), *others]
    found.sort(key=lambda each: order.index(name) if (name := _input_of(each)) in order else len(order))
    outcomes: dict[str, Outcome] = {name: Failed(ErrorCode.BAD_INPUT, None, tuple(found)) for name in names}
    if style == "json":
        _print_json(compiled, outcomes)
    else:
        click.echo(outcome_lines(compiled, next(iter(outcomes.values())), inputs), err=True)
    return WRONG_INPUT


def _input_of(problem: Problem) -> str:
    """The input that a path begins with."""
    return re.split(r"[.\[]", problem.path, maxsplit=1)[0]


def _from_text(type_: Type, text: str) -> object:
    """A scalar by its type, as a node would write it; a collection or a record as JSON."""
    scalar = without_null(type_)
    if isinstance(scalar, Primitive | Enum):
        return plain(value_from_text(scalar, text))
    try:
        return input_of_json(type_, forms_of_json(text))
    except ValueError:  # a key that stands twice
        raise ValueProblem(ProblemKind.DUPLICATE) from None


def _from_json(file: TextIO, types: Mapping[str, Type]) -> dict[str, object]:
    """A JSON object. Numbers with a point are read exactly as they stand, so `9.99` is a decimal and never a float."""

    try:
        text = file.read()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"--json {file.name}: {error}; JSON text is written in UTF-8") from None
    try:
        inputs = forms_of_json(text)
    except JsonMistake as mistake:
        place = place_at(text, mistake.offset)
        raise click.UsageError(f"--json {file.name}:{place.line}:{place.column}: {mistake.what}") from None
    if not isinstance(inputs, dict):
        raise click.UsageError(f"--json {file.name}: the inputs must be a JSON object")
    try:
        return {name: input_of_json(types[name], form) if name in types else form for name, form in inputs.items()}
    except ValueError as error:
        raise click.UsageError(f"--json {file.name}: {error}") from None


# -- output ---------------------------------------------------------------------------------------


def _shown(
    compiled: Compiled, outcome: Outcome, inputs: Mapping[str, object], limits: Limits, why: Sequence[str] = ()
) -> str:
    """An outcome for a person; of a limit also who set it and how it is raised."""
    match outcome:
        case LimitHit("fuel"):
            origin = "unless more is given" if limits.fuel == DEFAULT_FUEL else "by --fuel"
            return (
                f"error: limit hit: fuel; {compiled.node.node_id} has {limits.fuel:,} units {origin}, and needs more\n"
                "  a unit is an item that a loop takes, a round of a `while` loop or a called node; "
                "give more with --fuel"
            )
        case LimitHit("time"):
            return (
                f"error: limit hit: time; {compiled.node.node_id} computed for {limits.seconds:g} s, set by --seconds\n"
                "  give more with --seconds, or none to let it run as long as its fuel lasts"
            )
        case _:
            return outcome_lines(compiled, outcome, inputs, why)


def _document(compiled: Compiled, outcomes: Mapping[str, Outcome], why: Sequence[str] = ()) -> dict[str, Any]:
    document: dict[str, Any] = {
        "node": compiled.node.node_id,
        "semantic_hash": compiled.semantic_hash,
        "outcomes": {name: outcome_json(compiled.node, outcome) for name, outcome in outcomes.items()},
    }
    return {**document, "why": list(why)} if why else document


def _print_json(compiled: Compiled, outcomes: Mapping[str, Outcome], trace_id: str | None = None) -> None:
    document = _document(compiled, outcomes)
    if trace_id is not None:
        document["trace_id"] = trace_id
    if len(outcomes) > 1 and not _has_run_out_of_time(outcomes):
        document["agree"] = _agree(outcomes)
    click.echo(json_text(document))


def _print_both(
    compiled: Compiled,
    programs: Mapping[str, Program],
    outcomes: Mapping[str, Outcome],
    inputs: dict[str, object],
    now: datetime,
    limits: Limits,
) -> None:
    click.echo(f"{compiled.node.node_id}  semantic hash {compiled.semantic_hash[:12]}\n")
    for name, outcome in outcomes.items():
        click.echo(f"{name}:")
        click.echo(_shown(compiled, outcome, inputs, limits) + "\n")
    if _has_run_out_of_time(outcomes):
        click.echo("the limit on time was hit, so the outcomes cannot be compared")
        return
    click.echo("the engines agree" if _agree(outcomes) else "THE ENGINES DISAGREE; this is a bug in Vesper")
    times = {name: _median_seconds(program, inputs, now, limits) for name, program in programs.items()}
    shown = ", ".join(f"{name} {seconds * 1e6:.1f} µs" for name, seconds in times.items())
    click.echo(f"{shown} a call (median of {_TIMED_CALLS})")


def _median_seconds(program: Program, inputs: dict[str, object], now: datetime, limits: Limits) -> float:
    samples = []
    for _ in range(_TIMED_CALLS):
        start = time.perf_counter()
        program.call(inputs, now, limits)
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)
