"""Options of `vesper run`, and which of them exclude each other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO

import click

from vesper.cli.engine_names import DIRECT, EngineChoice
from vesper.cli.number_ranges import FiniteRange
from vesper.cli.options import (
    NODE,
    ReadPath,
    apply_options,
    config_option,
    format_option,
    input_options,
    nodes_option,
    now_option,
)
from vesper.compiler import Compiled
from vesper.engines.engine import MEBIBYTE, Limits, limits_of_node
from vesper.engines.registry import NAMES, PAIR, REFERENCE
from vesper.values.limits import DEFAULT_FUEL, DEFAULT_MEMORY, MAX_FUEL, MAX_MEMORY

_SANDBOX_ENGINE = "interp"
_SANDBOX_SECONDS = 10.0
_NOT_ROUTED = {"case_name": "--case", "record": "--record", "is_traced": "--trace", "overlay": "--overlay"}
AUTO = "auto"
BOTH = "both"

run_options = apply_options(
    click.argument("node", type=NODE),
    nodes_option,
    input_options,
    click.option(
        "--engine",
        type=EngineChoice(NAMES, BOTH, AUTO),
        default=REFERENCE,
        show_default=True,
        help=f"Engine: {REFERENCE} or {DIRECT}; interp and jit select a tier of {DIRECT}. `both` runs {REFERENCE} and "
        f"{DIRECT}, compares and times them; `auto` follows the mode of the node (vesper status).",
    ),
    format_option("text", "json", "md", help="Form of the outcome; md requires --explain."),
    now_option("now"),
    click.option(
        "--fuel",
        type=click.IntRange(0, MAX_FUEL),
        metavar="UNITS",
        help=f"Limit on loop items, rounds and called nodes; {DEFAULT_FUEL:,} by default.",
    ),
    click.option(
        "--memory",
        type=click.IntRange(0, MAX_MEMORY // MEBIBYTE),
        metavar="MB",
        help=f"Limit on the memory of values, in MiB; {DEFAULT_MEMORY // MEBIBYTE} by default.",
    ),
    click.option("--seconds", type=FiniteRange(0, 1e9), metavar="S", help="Limit on computing time; none by default."),
    click.option(
        "--sandbox",
        "is_sandboxed",
        is_flag=True,
        help="Run a node that is not trusted in a confined process, on the direct engine; 10 seconds by default.",
    ),
    click.option(
        "--overlay",
        type=ReadPath(),
        metavar="FILE",
        help="Replace values of parameters by those of FILE, for this run or batch.",
    ),
    click.option("--case", "case_name", metavar="NAME", help="Run a case of the node, with the answers it lists."),
    config_option("for effects"),
    click.option(
        "--record",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write the run with its requests and answers to FILE, as a test case.",
    ),
    click.option("--reveal", is_flag=True, help="Show sensitive values in error messages, --explain and --record."),
    click.option("--wait", "waits", is_flag=True, help="Stay until a run that waits has ended."),
    click.option("--trace", "is_traced", is_flag=True, help="Keep a trace of the run and print its id."),
    click.option(
        "--explain",
        "is_explained",
        is_flag=True,
        help="Print why: matched rows, conditions with their values, and the nearest input with another outcome.",
    ),
    click.option(
        "--batch",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Run the node on every row of a .parquet, .arrow, .csv or .jsonl file, on the direct engine. FILE may be "
        "a folder or a pattern in quotes; repeat for more.",
    ),
    click.option(
        "--output",
        "-o",
        type=click.Path(path_type=Path),
        metavar="OUT",
        help="File for the results of --batch; without such a suffix, a folder of parts with a manifest.",
    ),
    click.option(
        "--on",
        "cluster",
        metavar="CLUSTER",
        help="Run --batch on Ray: `ray` starts a local cluster and ends it, `ray:auto` uses the one of this machine, "
        "ray://HOST:PORT another.",
    ),
    click.option("--resume", is_flag=True, help="Continue an interrupted --batch."),
    click.option(
        "--threads",
        type=click.IntRange(1, 1_024),
        help="Threads of --batch, or workers on Ray; by default one per processor.",
    ),
    click.option("--keep", multiple=True, metavar="COLUMN", help="Column of --batch to copy to OUT; repeat for more."),
    click.option("--decimals", metavar="N|text", help="Decimal places of decimals in OUT, or `text`."),
)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The command line of `vesper run`."""

    node: str
    root: Path
    pairs: tuple[str, ...]
    json_file: TextIO | None
    engine: str
    style: str
    start: str | None
    fuel: int | None
    memory: int | None
    seconds: float | None
    is_sandboxed: bool
    overlay: Path | None
    case_name: str | None
    config: Path | None
    record: Path | None
    reveal: bool
    waits: bool
    is_traced: bool
    is_explained: bool
    batch: tuple[Path, ...]
    output: Path | None
    cluster: str | None
    resume: bool
    threads: int | None
    keep: tuple[str, ...]
    decimals: str | None

    @property
    def engines(self) -> list[str]:
        """Names of the engines to run, the reference first."""
        if self.is_sandboxed:
            return [_SANDBOX_ENGINE]
        return list(PAIR) if self.engine == BOTH else [self.engine]

    def limits_for(self, compiled: Compiled) -> Limits:
        """Return the limits of the command line, lowered to those that the node declares."""
        return limits_of_node(self.limits, compiled.node.grants.policy) or self.limits

    @property
    def limits(self) -> Limits:
        seconds = _SANDBOX_SECONDS if self.is_sandboxed and self.seconds is None else self.seconds
        return Limits(
            DEFAULT_FUEL if self.fuel is None else self.fuel,
            seconds,
            DEFAULT_MEMORY if self.memory is None else self.memory * MEBIBYTE,
        )


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run of a node: the node, its inputs, its start and the command line."""

    compiled: Compiled
    inputs: dict[str, object]
    now: datetime
    options: RunOptions


def check_combination(context: click.Context) -> None:
    """Refuse options that exclude each other."""
    given = context.params
    if given["style"] == "md" and not given["is_explained"]:
        raise click.UsageError("--format md is a form of explanations: add --explain")
    if given["is_explained"]:
        for name, option in {"is_sandboxed": "--sandbox", "case_name": "--case", "batch": "--batch"}.items():
            if given[name]:
                raise click.UsageError(f"--explain cannot be combined with {option}")
    if given["is_sandboxed"]:
        _check_sandbox(context)
    if given["batch"]:
        _check_batch(context)
        return
    for name in ("output", "resume", "threads", "keep", "decimals", "cluster"):
        if given[name]:
            raise click.UsageError(f"--{'on' if name == 'cluster' else name} requires --batch FILE")
    if given["engine"] == AUTO:
        for name, option in _NOT_ROUTED.items():
            if given[name]:
                raise click.UsageError(f"{option} cannot be combined with --engine {AUTO}: name an engine, or `both`")
    if given["case_name"] is not None:
        if given["pairs"] or given["json_file"] is not None or given["start"] is not None:
            raise click.UsageError("--case has its own inputs and start: omit --input, --json and --now")
        if given["record"] is not None:
            raise click.UsageError("--case performs no effects to record: omit --record")
        if given["is_traced"]:
            raise click.UsageError("--case uses the answers of the case: omit --trace")


def _check_sandbox(context: click.Context) -> None:
    """Refuse options that leave the sandbox."""
    for name, option in {"batch": "--batch", "case_name": "--case"}.items():
        if context.params[name]:
            raise click.UsageError(f"--sandbox cannot be combined with {option}")
    is_given = context.get_parameter_source("engine") is not click.core.ParameterSource.DEFAULT
    if is_given and context.params["engine"] != _SANDBOX_ENGINE:
        raise click.UsageError("--sandbox runs on the direct engine's interpreter: omit --engine")


def _check_batch(context: click.Context) -> None:
    """Refuse options of single runs beside `--batch`."""
    for name, option in {
        "pairs": "--input",
        "json_file": "--json",
        "case_name": "--case",
        "record": "--record",
        "reveal": "--reveal",
        "is_traced": "--trace",
        "config": "--config",
    }.items():
        if context.params[name]:
            raise click.UsageError(f"--batch cannot be combined with {option}")
    cluster = context.params["cluster"]
    if cluster is not None and cluster not in ("ray", "ray:auto") and not cluster.startswith("ray://"):
        raise click.UsageError(f"--on {cluster}: write `ray`, `ray:auto` or ray://HOST:PORT")
    is_given = context.get_parameter_source("engine") is not click.core.ParameterSource.DEFAULT
    if is_given and context.params["engine"] in (REFERENCE, BOTH, AUTO):
        raise click.UsageError(f"--batch runs on the direct engine: omit --engine, or write --engine {DIRECT}")
