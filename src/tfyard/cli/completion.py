"""`tfyard completion`: scripts for completion of commands, options and names of jobs and tasks in a shell.

For `kubectl tfyard`, kubectl calls the program `kubectl_complete-tfyard`, which is `kubectl_complete`.
"""

import sys

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from tfyard.cli.main import tfyard

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_TFYARD_COMPLETE"
OFFER_FILES, OFFER_NO_FILES = ":0", ":4"
"""Directives of Cobra: whether the shell completes file names, too."""


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print a script that completes commands, options and the names of jobs, tasks, namespaces and contexts.

    \b
    Examples:
      source <(tfyard completion bash)                                       # for this shell
      tfyard completion bash > ~/.local/share/bash-completion/completions/tfyard
      tfyard completion zsh > "${fpath[1]}/_tfyard"
      tfyard completion fish > ~/.config/fish/completions/tfyard.fish
    """
    completion_class = get_completion_class(shell)
    assert completion_class is not None
    click.echo(completion_class(tfyard, {}, "tfyard", VARIABLE).source())


def kubectl_complete() -> None:
    """Complete `kubectl tfyard ...`: the arguments are the words before the cursor, the last one is incomplete."""
    *before, incomplete = sys.argv[1:] or [""]
    items = ShellComplete(tfyard, {}, "tfyard", VARIABLE).get_completions(before, incomplete)
    for item in items:
        if item.type == "plain":
            click.echo(_line(item))
    click.echo(OFFER_FILES if any(item.type != "plain" for item in items) else OFFER_NO_FILES)


def _line(item: CompletionItem) -> str:
    return f"{item.value}\t{item.help}" if item.help else str(item.value)
