"""`tfyard restart`: some tasks of a job start again."""

from typing import Any

import click

from tfyard.cli import acting, cluster, offers, target


@click.command("restart")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.argument("words", metavar="[TASK|ROLE]...", nargs=-1, shell_complete=offers.tasks)
@click.option("--all", "everything", is_flag=True, help="All tasks.")
@click.option("--no-wait", is_flag=True, help="Do not wait until they run again.")
@acting.timeout_option
@acting.yes_option
@cluster.job_options
def command(
    name: str, words: tuple[str, ...], everything: bool, no_wait: bool, timeout: str, **options: Any
) -> None:
    """Start tasks of a running job again: worker-0, worker-0..3, or a role. It costs no retry, whatever the
    restart policy says: their pods are deleted, and the operator replaces them. On this machine the tasks are
    evicted, with their grace period.

    Tasks that train in step with each other (MultiWorkerMirroredStrategy) end with an error when one of them
    goes; they need `restart: on-failure`, or all of them are restarted by --all.

    \b
    stop     its pods are deleted, the job stays and can be resumed
    restart  some of its tasks start again, the others run on
    rerun    a new job of the same spec starts, the old one stays
    delete   the job and its pods are deleted, its data stays

    \b
    Examples:
      tfyard restart mnist worker-1
      tfyard restart mnist ps worker-0..3 --no-wait
      tfyard restart mnist --all --yes
    """
    yes = bool(options.pop("yes"))
    if bool(words) == everything:
        raise click.UsageError("Name tasks or roles, as in worker-1 or ps; or all of them, by --all.")
    found = target.find(name, options)
    if isinstance(found, target.LocalRun):
        _restart_in_run(found, words, yes, no_wait)
        return
    from tfyard.remote import actions

    with found.client as client:
        intent = actions.restart(client, found.found, words)
        acting.carry_out(found, intent, yes)
        if not no_wait:
            acting.wait(found, intent, timeout)
            click.echo(f"running again: {', '.join(intent.pods)}")


def _restart_in_run(found: target.LocalRun, words: tuple[str, ...], yes: bool, no_wait: bool) -> None:
    from tfyard.local import actions

    tasks = actions.to_restart(found.directory, words)
    goes = [f"the processes of {', '.join(tasks)}, after their grace period"]
    acting.tell(f"restart {found.record.name}", goes, ["the other tasks, and the retries that are left"])
    acting.confirm(yes)
    with acting.interruptible(found.record.name, acting.GOES_ON["restart"]):
        for task in actions.restart(found.directory, tasks, wait=not no_wait):
            click.echo(f"running again: {task}")
