"""`tfyard completion`: scripts that make a shell offer commands, options and the names of jobs and tasks.

And kubectl's way to the same: it asks the program `kubectl_complete-tfyard`.
"""

import sys

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_TFYARD_COMPLETE"
OFFER_FILES, OFFER_NO_FILES = ":0", ":4"
"""Cobra's directives: what the shell does besides offering our words."""


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print a script that completes commands, options and the names of jobs, tasks, namespaces and contexts.

    \b
    Examples:
      source <(tfyard completion bash)                                       # for now
      tfyard completion bash > ~/.local/share/bash-completion/completions/tfyard
      tfyard completion zsh > "${fpath[1]}/_tfyard"
      tfyard completion fish > ~/.config/fish/completions/tfyard.fish
    """
    from tfyard.cli.main import tfyard

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(tfyard, {}, "tfyard", VARIABLE).source())


def kubectl_complete() -> None:
    """For `kubectl tfyard ...`: the words before the cursor are our arguments, the last one is incomplete."""
    from tfyard.cli.main import tfyard

    *before, incomplete = sys.argv[1:] or [""]
    items = ShellComplete(tfyard, {}, "tfyard", VARIABLE).get_completions(before, incomplete)
    for item in items:
        if item.type == "plain":
            click.echo(_line(item))
    click.echo(OFFER_FILES if any(item.type != "plain" for item in items) else OFFER_NO_FILES)


def _line(item: CompletionItem) -> str:
    return f"{item.value}\t{item.help}" if item.help else str(item.value)
