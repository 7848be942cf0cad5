"""`vesper kernel`: commands for the kernel's program, workers, pipelines and questions to people."""

from __future__ import annotations

import click

from vesper.cli.kernel.interrupts import interrupts
from vesper.cli.kernel.run import run
from vesper.cli.kernel.serve import serve
from vesper.cli.kernel.status import status
from vesper.cli.kernel.worker import worker


@click.group("kernel")
def command() -> None:
    """Run pipelines of nodes: serve the kernel, run steps as a worker, submit, answer.

    Tokens come from the environment: VESPER_KERNEL_TOKENS of the kernel; VESPER_KERNEL_TOKEN of the others, or
    VESPER_KERNEL_TOKEN_FILE, which is read for each call.

    Exit codes: 0 success, 1 refused or failed, 2 usage.
    """


for each in (serve, worker, run, interrupts, status):
    command.add_command(each)
