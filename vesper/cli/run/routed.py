"""`vesper run --engine auto`: the node is run as a service would run it, on the engines that its mode says.

It is a request like any other: what both engines came to is compared and told to the store before the command ends.
Where the store is away Python answers, as in a service; the answer is the command's all the same, for what it took to
get it may have been performed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from vesper.cli.migrate.open_store import clean_errors
from vesper.compiler import Compiled
from vesper.config.settings import default_config, find_config, read_config
from vesper.engines.engine import EngineUnavailable
from vesper.migration.compare.divergence import Divergence
from vesper.migration.control.modes import Mode
from vesper.migration.router.router import RoutedProgram
from vesper.migration.router.routes import Routes

AUTO = "auto"
_STARTS_WITHIN = 30.0
"""Seconds for a process of the direct engine, where it has its own."""
_MEANING = {
    Mode.PYTHON_ONLY: "Python answers, and nothing is compared",
    Mode.SHADOW_DIRECT: "Python answers, and the direct engine follows",
    Mode.CANARY_DIRECT: "of some callers both engines run before one is answered; of the others Python answers",
    Mode.DUAL_VERIFY: "Python answers, and the direct engine follows",
    Mode.DIRECT_ONLY: "the direct engine answers where its path has the evidence",
}


def refuse_beside_auto(context: click.Context) -> None:
    """What is about one engine, or about several whatever the mode says."""
    for name, option in {"case_name": "--case", "record": "--record", "is_traced": "--trace"}.items():
        if context.params[name]:
            raise click.UsageError(f"{option} does not go with --engine {AUTO}: name one engine, or `both`")


class RoutedRun:
    """One request."""

    def __init__(self, program: RoutedProgram) -> None:
        self.program = program
        self.mode = program.live.local.mode
        """When it began."""
        self.divergences: list[str] = []
        """Fingerprints of what it found, once it is over. What others find meanwhile is in the same store, and is not
        among these: this run did not show it."""
        program.live.witnesses.append(self._found)

    def _found(self, divergence: Divergence) -> None:
        if divergence.fingerprint not in self.divergences:
            self.divergences.append(divergence.fingerprint)

    @property
    def text(self) -> str:
        return f"mode {self.mode.value}: {_MEANING[self.mode]}"


@contextmanager
def routed(compiled: Compiled, config: Path | None) -> Iterator[RoutedRun]:
    """Within it the node can be run; behind it everything was compared, and the store knows."""
    with clean_errors():
        found = config or find_config()
        settings = default_config(Path.cwd()) if found is None else read_config(found)
        routes = Routes(settings)
        try:
            run = RoutedRun(routes.program(compiled))
            if not routes.wait_until_ready(_STARTS_WITHIN):
                click.echo("warning: the process of the direct engine does not start: nothing is compared", err=True)
            yield run
        except EngineUnavailable as problem:
            raise click.UsageError(f"engine {AUTO}: {problem}") from None
        finally:
            routes.close()
