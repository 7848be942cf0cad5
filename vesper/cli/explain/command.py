"""`vesper explain`."""

from __future__ import annotations

import textwrap

import click

from vesper.cli.explain.failures import failure_code, failure_explanation
from vesper.cli.output.terminal import columns
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.values.generated.errors import ErrorCode


@click.command("explain")
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Explain a diagnostic, with an example and its fix, or a failure of a run.

    CODE is a number (VSP1102 or 1102), a name (unknown-name) or the code of a failure (division_by_zero). Without CODE,
    the diagnostics are listed.
    """
    if code is None:
        click.echo(_list_codes())
    elif (failure := failure_code(code)) is not None:
        click.echo(failure_explanation(failure, columns()))
    else:
        click.echo(explanation(_find_code(code), columns()))


def _find_code(wanted: str) -> Code:
    word = wanted.strip().lower().replace("_", "-")
    for code in Code:
        if word in (code.title, code.number.lower(), code.number.lower().removeprefix("vsp")):
            return code
    names = [name for code in Code for name in (code.number, code.title)]
    help_ = did_you_mean(f"VSP{word}" if word.isdigit() else word, names) or did_you_mean(wanted, ErrorCode)
    raise click.UsageError(f"unknown diagnostic `{wanted}`" + (f"; {help_}" if help_ else ""))


def _list_codes() -> str:
    width = max(len(code.title) for code in Code)
    return "\n".join(f"{code.number}  {code.title:<{width}}  {code.outline}" for code in Code)


def explanation(code: Code, width: int = 100) -> str:
    """Return the meaning of a code, a node with its diagnostics, and the fixed node."""
    from vesper.compiler import compile_source
    from vesper.language.diagnostics.explanations import EXPLANATIONS
    from vesper.language.diagnostics.render.full import render_full
    from vesper.language.diagnostics.source import SourceFile

    about = EXPLANATIONS[code.number]
    text = textwrap.fill(about.text, width, break_long_words=False, break_on_hyphens=False)
    parts = [f"{code.number} {code.title}: {code.outline}", text]
    if about.bad is None or about.good is None:
        return "\n\n".join([*parts, f"There is no example: {about.no_example}."])
    _, bag = compile_source(SourceFile("example.vsp", about.bad))
    diagnostics = [render_full(bag.source, diagnostic) for diagnostic in bag.sorted(notes=True)]
    return "\n\n".join([*parts, "Wrong:", _indent(about.bad), *diagnostics, "Right:", _indent(about.good)])


def _indent(text: str) -> str:
    return textwrap.indent(text.rstrip("\n"), "    ")
