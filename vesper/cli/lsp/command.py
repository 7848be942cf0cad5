"""`vesper lsp`."""

from __future__ import annotations

import gc
import importlib.util
import os
import sys

import click

_ALLOCATIONS = 50_000
"""Allocations between two collections of cycles, as in `vesper check`."""


@click.command("lsp")
@click.option("--stdio", is_flag=True, help="Use standard input and output; the default, which editors may name.")
def command(stdio: bool) -> None:  # noqa: ARG001  # some editors pass it
    """Serve an editor by the Language Server Protocol.

    The editor starts this command and sends texts; the answers are diagnostics while typing, quick fixes, completion,
    definitions, formatting and more, for every .vsp file of its workspace. See docs/how-to/use-an-editor.md.
    """
    if importlib.util.find_spec("pygls") is None:
        raise click.ClickException("the language server needs pygls: run `pip install 'vesper[lsp]'`")
    from vesper.cli.test.failure_text import case_failure_text
    from vesper.lsp.server import VesperServer

    # A line that anything else prints would end the protocol, so standard output becomes standard error.
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdin.close()
    # Results of thousands of nodes stay; looking for cycles among them at every turn would delay answers.
    gc.set_threshold(_ALLOCATIONS, 20, 100)
    VesperServer(case_failure_text).start_io(requests, answers)
