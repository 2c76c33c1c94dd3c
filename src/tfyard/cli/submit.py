"""`tfyard submit`: a job onto a cluster, from a file of any format or a Python script."""

from __future__ import annotations

import math
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from tfyard import extras
from tfyard.cli import cluster, job_input, target
from tfyard.errors import Usage
from tfyard.overview.record import INTERRUPT_CODE
from tfyard.overview.waiting import DELETED_CODE

if TYPE_CHECKING:
    from tfyard.kube.sync import SyncClient
    from tfyard.remote.code_plan import Plan
    from tfyard.remote.prepare import Prepared, Submission


class After(Struct, frozen=True):
    """What is done once the job is there."""

    follow: bool
    wait: bool
    on_finish: str
    verbose: bool

    def check(self) -> None:
        """Before the job is there."""
        if self.follow and self.wait:
            raise Usage("--follow waits, too: give one of --follow and --wait")
        if self.on_finish and not (self.follow or self.wait):
            raise Usage(
                "--on-finish needs --follow or --wait: without them tfyard does not wait for the end of the job"
            )
        if self.on_finish and Path(self.on_finish).exists() and not Path(self.on_finish).is_dir():
            raise Usage(f"--on-finish {self.on_finish}: this is a file; give a folder")
        if self.follow or self.on_finish:
            with extras.needs("kubernetes", f"tfyard submit {'--follow' if self.follow else '--on-finish'}"):
                from tfyard.remote import log_follow  # noqa: F401


@click.command("submit", cls=job_input.JobCommand)
@job_input.options
@click.option("--image", default="", help="Image of every task; default: the file's, or TensorFlow's own.")
@click.option(
    "-f", "--follow", is_flag=True, help="Print the logs until the job ends; end with its exit code."
)
@click.option("-v", "--verbose", is_flag=True, help="Follow the messages of TensorFlow's runtime, too.")
@click.option("--wait", is_flag=True, help="Wait until the job has succeeded; end with its exit code.")
@click.option(
    "--on-finish", default="", metavar="DIR", help="Then copy the outputs of the job into this folder."
)
@click.option(
    "--dry-run",
    type=click.Choice(["none", "client", "server"]),
    default="none",
    help="client: print the manifests and ask no cluster. server: let it check everything, and store nothing.",
)
@click.option("--force", is_flag=True, help="Submit the job although it looks as if it could not run.")
@click.option("--force-conflicts", is_flag=True, help="Take over fields that others own, as kubectl does.")
@click.option(
    "--helper-image", default="", metavar="IMAGE", help="Image of the pods that copy code and outputs."
)
@cluster.namespace_options
def command(dry_run: str, **options: Any) -> None:
    """Submit a job to a cluster. FILE is what `tfyard run` takes: a job file, a TFJob of any version, workloads
    such as a Job, or a Python script. Before anything is created, it is checked whether the job can run there.

    A script is submitted with the folder that it is called from, and with a volume at /out for what it writes: a
    program that writes to os.environ.get("TFYARD_OUT", "out") works here and there.

    Exit codes: 0 it was submitted, or has succeeded (--follow, --wait); if the job failed, the code of the task
    that failed; 130 after Ctrl-C, which leaves the job alone.

    \b
    Examples:
      tfyard submit job.yaml
      tfyard submit job.yaml --set worker=4 -n ml --wait
      tfyard submit train.py --worker 2 --follow --on-finish out -- --steps 100
      tfyard submit job.yaml --dry-run=server        # would it be accepted?
    """
    from tfyard.remote.prepare import Submission

    after = After(**{name: options.pop(name) for name in After.__struct_fields__})
    after.check()
    given = {name: options.pop(name) for name in [*options] if name in Submission.__struct_fields__}
    where = {**options, "namespace": given["namespace"]}
    given |= {"dry_run": dry_run == "server", "leave_out": after.on_finish}
    submission = Submission(**job_input.with_target(given))
    if dry_run == "client":
        _print_manifests(submission, where)
        return
    with cluster.connect(where) as client:
        sys.exit(_submit(client, submission, after, where))


def _print_manifests(submission: Submission, where: dict[str, Any]) -> None:
    from tfyard import formats
    from tfyard.cli import files
    from tfyard.remote.prepare import offline, prepare

    prepared = prepare(submission, submission.namespace or _namespace(where))
    _tell(prepared)
    for note in prepared.notes:
        target.say(note)
    files.print_text(formats.to_yaml(*offline(prepared)))


def _namespace(where: dict[str, Any]) -> str:
    """Of the context; without one, Kubernetes' own."""
    return cluster.connect(where).access.namespace if cluster.is_configured(where) else "default"


def _tell(prepared: Prepared) -> None:
    from tfyard.cli import problems

    problems.report(prepared.warnings, prepared.text)


def _submit(client: SyncClient, submission: Submission, after: After, where: dict[str, Any]) -> int:
    from tfyard.remote.prepare import prepare
    from tfyard.remote.submission import submit_prepared

    prepared = prepare(submission, client.access.namespace)
    _tell(prepared)
    found = submit_prepared(client, prepared, submission, target.say, lambda plan: _upload(client, plan))
    job = target.ClusterJob(client, found)
    if submission.dry_run:
        return 0
    if not (after.follow or after.wait):
        click.echo(f"{job.found.title} submitted")
        target.say(f"`tfyard logs -f {_named(job, where)}` follows it")
        return 0
    code = _end_or_interrupt(job, after, _named(job, where))
    if code is None:
        return INTERRUPT_CODE
    if after.on_finish and not (code == DELETED_CODE and _is_gone(job)):
        return _copy(job, Path(after.on_finish), submission.helper_image) or code
    return code


def _is_gone(job: target.ClusterJob) -> bool:
    """A task may end with the code that stands for a deleted job."""
    from tfyard.kube import NotFound, requests

    try:
        return bool(job.client.send(requests.get(job.found.path))["metadata"].get("deletionTimestamp"))
    except NotFound:
        return True


def _upload(client: SyncClient, plan: Plan) -> None:
    from tfyard.cli import interrupts, progress_bar
    from tfyard.remote import code_store

    sent = 0
    with progress_bar.shown() as progress:

        def advance(now: int, _: int) -> None:
            nonlocal sent
            progress.advance(now - sent)
            sent = now

        progress.begin(plan.files, plan.size)
        interrupts.run(code_store.upload(client.access, plan, progress.say, advance))


def _end_or_interrupt(job: target.ClusterJob, after: After, name: str) -> int | None:
    """Its exit code; None after Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return _end(job, after)
    except KeyboardInterrupt:
        target.say("the job keeps running; next:")
        for words in ("logs -f", "stop", "delete"):
            click.echo(f"  tfyard {words} {name}", err=True)
        return None


def _end(job: target.ClusterJob, after: After) -> int:
    """Its exit code, when it has ended."""
    if after.follow:
        from tfyard.cli.log_printer import Options, of_job

        return of_job(job, Options(follow=True, folds=not after.verbose))
    from tfyard.cli.waiting import until
    from tfyard.overview.wording import harmless

    over = until(target.place(job), "succeeded", (), math.inf)
    click.echo(harmless(over.text), err=over.code != 0)
    return over.code


def _copy(job: target.ClusterJob, folder: Path, image: str) -> int:
    """1: not everything could be copied."""
    from tfyard.cli import interrupts, progress_bar
    from tfyard.kube import Client
    from tfyard.remote.copying import Copied, Options, fetch_outputs

    async def fetch() -> list[Copied]:
        options = Options(image=image) if image else Options()
        async with Client(job.client.access) as client:
            return await fetch_outputs(client, job.found, folder, progress, options)

    with progress_bar.shown() as progress:
        copied = interrupts.run(fetch())
    for each in copied:
        progress_bar.report(each)
    return int(any(each.problems for each in copied))


def _named(job: target.ClusterJob, where: dict[str, Any]) -> str:
    """As other commands find it: with the options by which this one found the cluster."""
    from shlex import join

    words = [job.found.name]
    for option, key in (("-n", "namespace"), ("--context", "context"), ("--kubeconfig", "kubeconfig")):
        words += [option, where[key]] if where[key] else []
    return join(words)
