"""`tfyard restart`: restarts tasks of a job."""

from typing import Any

import click

from tfyard.cli import acting, cluster, offers, output, several
from tfyard.cli.waiting import seconds


@click.command("restart", cls=acting.ActionCommand)
@click.argument("name", metavar="[JOB]", default="", shell_complete=offers.jobs)
@click.argument("words", metavar="[TASK|ROLE]...", nargs=-1, shell_complete=offers.tasks)
@several.selector_option
@click.option("--all", "everything", is_flag=True, help="Restart all tasks.")
@click.option("--no-wait", is_flag=True, help="Do not wait until they run again.")
@acting.timeout_option
@acting.yes_option
@output.text_or_json
@cluster.job_options
def command(
    name: str, words: tuple[str, ...], everything: bool, no_wait: bool, timeout: str, **options: Any
) -> None:
    """Restart tasks of a running job: worker-0, worker-0..3, or a role; with -l, those of several jobs. It uses
    no retry, under every restart policy: the pods are deleted, and the operator replaces them. On this machine
    the tasks are evicted, with their grace period.

    Tasks that train in lockstep (MultiWorkerMirroredStrategy) fail when one of them stops: then all start again,
    once, at no retry.

    \b
    Examples:
      tfyard restart mnist worker-1
      tfyard restart mnist ps worker-0..3 --no-wait
      tfyard restart mnist --all --yes
      tfyard restart -l team=vision ps
    """

    names = (name,) if name and not options["selector"] else ()
    words = words if names or not name else (name, *words)  # with -l, every argument is a task or a role
    if bool(words) == everything:
        raise click.UsageError("Name tasks or roles, as in worker-1 or ps; or all of them, by --all.")
    acting.change(
        names, options, lambda place: place.restart(words), timeout=None if no_wait else seconds(timeout)
    )
