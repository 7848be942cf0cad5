"""`vesper demo`: serve, migrate, break and recover nodes in a temporary folder."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from vesper.cli.output.terminal import style

_INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended, as shells have it."""


@click.command("demo")
@click.option(
    "--seconds",
    type=click.FloatRange(1, 3_600),
    default=120.0,
    show_default=True,
    help="Longest wait for a change of mode.",
)
@click.option("--no-watch", is_flag=True, help="End after the story instead of watching until Ctrl-C.")
@click.pass_context
def command(ctx: click.Context, seconds: float, no_watch: bool) -> None:
    """Show a migration, a fault and a crash on a real server. Needs no settings and leaves nothing behind.

    See docs/how-to/try-the-demo.md.
    """
    from vesper.cli.demo.provider import Provider
    from vesper.cli.demo.scaled import scale_thresholds
    from vesper.cli.demo.story import Story
    from vesper.cli.status.command import command as status

    scale_thresholds()
    with tempfile.TemporaryDirectory(prefix="vesper-demo-") as folder, Provider() as provider:
        story = Story(Path(folder), provider, seconds)

        def watch() -> None:
            ctx.invoke(status, config=story.config, root=story.folder / "nodes", style="text", watch=True)

        try:
            story.tell(None if no_watch or not sys.stdout.isatty() else watch)
        except KeyboardInterrupt:
            click.echo("\nended by Ctrl-C", err=True)
            raise SystemExit(_INTERRUPTED) from None
    click.echo(f"\n{style('Next: docs/how-to/serve-nodes.md, docs/how-to/roll-out-a-node.md', 'dim')}")
