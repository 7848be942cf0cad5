"""`vesper completion`: the script that completes commands, options and node ids in a shell."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

_FILES = {
    "bash": "${XDG_DATA_HOME:-~/.local/share}/bash-completion/completions/vesper",
    "zsh": "a folder of $fpath, such as ~/.zfunc/_vesper",
    "fish": "~/.config/fish/completions/vesper.fish",
}
_NOTE = """
# To install, write this script to {file}, or evaluate it at the start of each shell:
#   {start}
"""
_STARTS = {
    "bash": "echo 'eval \"$(vesper completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(vesper completion zsh)\"' >> ~/.zshrc    # after compinit",
    "fish": "echo 'vesper completion fish | source' >> ~/.config/fish/config.fish",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(tuple(_FILES)))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell: commands, options and node ids.

    \b
    bash:  vesper completion bash > ~/.local/share/bash-completion/completions/vesper
    zsh:   vesper completion zsh > ~/.zfunc/_vesper    # a folder of $fpath
    fish:  vesper completion fish > ~/.config/fish/completions/vesper.fish

    A new shell completes then. Node ids are the names of the files under --nodes; nothing is compiled.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    # The method of the base class: that of bash starts a bash to ask for its version.
    script = ShellComplete.source(kind(context.find_root().command, {}, "vesper", "_VESPER_COMPLETE"))
    click.echo(script.rstrip() + "\n" + _NOTE.format(file=_FILES[shell], start=_STARTS[shell]), nl=False)
