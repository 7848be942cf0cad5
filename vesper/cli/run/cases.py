"""`vesper run --case`: a case of the node, with the answers that it lists."""

from __future__ import annotations

from collections.abc import Mapping

import click

from vesper.cli.engine_names import engine_label
from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.load_node import find_case, load_programs
from vesper.cli.run.options import RunOptions
from vesper.cli.run.output import engines_agree, outcome_text, print_json
from vesper.compiler import Compiled
from vesper.engines.outcome import EngineFault, Outcome
from vesper.language.check.cases import Case
from vesper.values.model import show
from vesper.verify.differential.verifier import meets
from vesper.verify.inputs.responses import UnexpectedRequest
from vesper.verify.inputs.responses import run_case as run_case_on


def run_case(compiled: Compiled, options: RunOptions) -> int:
    """Run the case on each engine, print its requests and outcome, and return the exit code."""
    assert options.case_name is not None
    programs = load_programs(compiled, options.engines)
    case = find_case(compiled, options.case_name)
    limits = options.limits_for(compiled)
    outcomes: dict[str, Outcome] = {}
    requests: list[str] = []
    for name, program in programs.items():
        try:
            done = run_case_on(program, case, limits)
        except UnexpectedRequest as problem:
            click.echo(f"{engine_label(name)}: case `{case.name}`: {problem}", err=True)
            return WRONG_INPUT
        outcomes[name] = done.outcome
        requests = [f"{each.path}  {each.effect} {show(dict(each.arguments))}" for each in done.requests]
    if options.style == "json":
        print_json(compiled, outcomes, reveals=True)  # the node has the values of its cases
    else:
        for number, line in enumerate(requests, start=1):
            click.echo(f"{number}. {line}")
        for name, outcome in outcomes.items():
            title = "" if len(outcomes) == 1 else f"{engine_label(name)}:\n"
            click.echo(title + outcome_text(compiled, outcome, case.inputs, limits, reveals=True))
    return _exit_code(case, outcomes)


def _exit_code(case: Case, outcomes: Mapping[str, Outcome]) -> int:
    if not engines_agree(outcomes) or any(isinstance(outcome, EngineFault) for outcome in outcomes.values()):
        return OUR_BUG
    if not all(meets(case, outcome) for outcome in outcomes.values()):
        click.echo(f"the case `{case.name}` expects another outcome", err=True)
        return WRONG_INPUT
    return FINE
