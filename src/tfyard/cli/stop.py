"""`tfyard stop`: a job keeps its memory and gives its pods, or processes, back."""

from typing import Any

import click

from tfyard.cli import acting, cluster, offers, target


@click.command("stop")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option(
    "--wait", is_flag=True, help="Wait until its pods are deleted; a local run is always waited for."
)
@acting.timeout_option
@acting.yes_option
@cluster.job_options
def command(name: str, wait: bool, timeout: str, yes: bool, **options: Any) -> None:
    """Stop a job: its pods are deleted after their grace period, the job stays; `tfyard resume` continues it.

    On a cluster the job is suspended (of one that Kueue has admitted, its Workload is deactivated). A run on
    this machine ends, as after Ctrl-C, and is recorded as Stopped.

    \b
    stop     its pods are deleted, the job stays and can be resumed
    restart  some of its tasks start again, the others run on
    rerun    a new job of the same spec starts, the old one stays
    delete   the job and its pods are deleted, its data stays

    \b
    Examples:
      tfyard stop mnist
      tfyard stop mnist --wait --yes
      tfyard stop @latest --local
    """
    found = target.find(name, options)
    if isinstance(found, target.LocalRun):
        _stop_run(found, yes)
        return
    from tfyard.remote import actions

    with found.client as client:
        intent = actions.stop(client, found.found)
        if acting.carry_out(found, intent, yes) and wait:
            acting.wait(found, intent, timeout)


def _stop_run(found: target.LocalRun, yes: bool) -> None:
    from tfyard.local import actions

    if found.record.ended is None:
        running = [task.name for task in found.record.tasks if task.outcome == "Running"]
        goes = [f"{', '.join(running)}, after their grace period"] if running else []
        acting.tell(f"stop {found.record.name}", goes, ["its record, its logs and its volumes"])
        acting.confirm(yes)
    with acting.interruptible(found.record.name, "its tasks end within their grace period"):
        ended = actions.stop(found.directory)
    click.echo(f"{ended.name} {'stopped' if ended.phase == 'Stopped' else f'ended: {ended.phase}'}")
