"""`tfyard submit`: submits a job to a cluster, from a file of any format or a Python script."""

import math
import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

import click

from tfyard import formats
from tfyard.cli import cluster, files, interrupts, job_input, output, problems, progress_bar, target
from tfyard.cli.afterwards import AfterSubmission
from tfyard.cli.log_printer import PrinterOptions, print_logs
from tfyard.cli.waiting import until
from tfyard.errors import Usage
from tfyard.job_input.files import SweepGiven
from tfyard.kube import NotFound, requests
from tfyard.kube.sync import SyncClient
from tfyard.overview.record import INTERRUPT_CODE
from tfyard.overview.waiting import DELETED_CODE
from tfyard.overview.wording import harmless
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.submitting.code_plan import Plan
from tfyard.remote.submitting.prepare import PreparedSubmission, Submission, offline, prepare
from tfyard.sdk.on_cluster import OnCluster
from tfyard.sdk.place import HelperOptions

if TYPE_CHECKING:
    from tfyard.remote.mlflow import JobAtMLflow


@click.command("submit", cls=job_input.JobCommand)
@job_input.options
@click.option("--image", default="", help="Image of every task; default: the file's, or TensorFlow's own.")
@click.option(
    "-f", "--follow", is_flag=True, help="Print the logs until the job ends; end with its exit code."
)
@click.option("-v", "--verbose", is_flag=True, help="Print the messages of TensorFlow's runtime, too.")
@click.option("--wait", is_flag=True, help="Wait until the job has succeeded; end with its exit code.")
@click.option(
    "--on-finish",
    default="",
    metavar="DIR",
    help="After the end, copy the outputs of the job into this folder.",
)
@click.option(
    "--dry-run",
    type=click.Choice(["none", "client", "server"]),
    default="none",
    help="Submit nothing: client prints the manifests, server checks everything on the cluster.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "name", "json", "yaml"]),
    default="text",
    help="Format of the output; json and yaml are the TFJob as the cluster has it.",
)
@click.option("--force", is_flag=True, help="Submit the job even if checks say that it cannot run.")
@click.option(
    "--force-conflicts", is_flag=True, help="Take over fields with other managers, as kubectl does."
)
@click.option(
    "--helper-image", default="", metavar="IMAGE", help="Image of the pods that copy code and outputs."
)
@click.option("--driver-image", default="", metavar="IMAGE", help="Image of the pod that drives a sweep.")
@cluster.namespace_options
def command(dry_run: str, **options: Any) -> None:
    """Submit a job to a cluster. FILE is what `tfyard run` takes: a job file, a TFJob of any version, workloads
    such as a Job, a Python script, or a sweep file. Before anything is created, it is checked whether the job can
    run there.

    A script is submitted with the current folder as its code and with a volume at /out for its output: a program
    that writes to os.environ.get("TFYARD_OUT", "out") works on this machine and on the cluster.

    A sweep is driven by a small Job in the namespace. With --follow, this command drives it: after Ctrl-C, trials
    that run go on to their end, and `tfyard resume` goes on with the sweep.

    Exit codes: 0 it was submitted, or has succeeded (--follow, --wait); if the job failed, the code of the task
    that failed; 130 after Ctrl-C, which leaves the job alone.

    \b
    Examples:
      tfyard submit job.yaml
      tfyard submit job.yaml --set worker=4 -n ml --wait
      tfyard submit train.py --worker 2 --follow --on-finish out -- --steps 100
      tfyard submit sweep.yaml -n ml                 # a Job there drives it
      tfyard submit job.yaml --dry-run=server        # would it be accepted?
      tfyard submit job.yaml -o json
    """
    after = AfterSubmission(**{name: options.pop(name) for name in AfterSubmission.__struct_fields__})
    after.check()
    fields = {name: options.pop(name) for name in [*options] if name in Submission.__struct_fields__}
    where = {**options, "namespace": fields["namespace"]}
    fields |= {"dry_run": dry_run == "server", "leave_out": after.on_finish}
    submission = Submission(**job_input.with_target(fields))
    if submission.mlflow and not after.follow and dry_run == "none":
        raise Usage("--mlflow needs --follow: only the process that follows the job reports it")
    if dry_run == "client":
        _print_manifests(submission, where, after.output)
        return
    with cluster.connect(where) as client:
        try:
            sys.exit(_submit(client, submission, after, where))
        except SweepGiven as given:
            sys.exit(_submit_sweep(client, given, submission, after, where))


def _submit_sweep(
    client: SyncClient,
    given: SweepGiven,
    submission: Submission,
    after: AfterSubmission,
    where: dict[str, Any],
) -> int:
    from tfyard.cli import submitted_sweep  # 100 ms, which a job does not need

    prepared = submitted_sweep.prepared(given, submission, client.access.namespace)
    return submitted_sweep.send(client, prepared, after, where, lambda plan: _upload(client, plan))


def _print_manifests(submission: Submission, where: dict[str, Any], form: str) -> None:
    namespace = submission.namespace or _namespace(where)
    try:
        prepared = prepare(submission, namespace)
        problems.report(prepared.warnings, prepared.text)
    except SweepGiven as given:
        from tfyard.cli import submitted_sweep  # 100 ms, which a job does not need

        prepared = submitted_sweep.prepared(given, submission, namespace).prepared
    for note in prepared.notes:
        target.say(note)
    manifests = offline(prepared)
    if form == "json":
        output.print_objects(output.OutputForm(form), manifests, single=False)
    else:
        files.print_text(formats.to_yaml(*manifests))


def _namespace(where: dict[str, Any]) -> str:
    """The namespace of the context, or `default` without a cluster."""
    return cluster.connect(where).access.namespace if cluster.is_configured(where) else "default"


def _submit(client: SyncClient, submission: Submission, after: AfterSubmission, where: dict[str, Any]) -> int:
    # With asyncio 20 ms, which --dry-run does not need.
    from tfyard.remote.submitting.submission import submit_prepared

    prepared = prepare(submission, client.access.namespace)
    problems.report(prepared.warnings, prepared.text)
    with _at_mlflow(prepared, submission, after) as at_mlflow:
        submitted = submit_prepared(
            client,
            prepared,
            submission,
            target.say,
            lambda plan: _upload(client, plan),
            at_mlflow.begin if at_mlflow else None,
        )
        job = OnCluster(client.access, submitted, target.say, client)
        if after.output != "text":
            _print_job(job.title, submitted, after.output)
            return 0
        if submission.dry_run:
            return 0
        name = join([job.name, *cluster.repeated(where)])
        if not (after.follow or after.wait):
            click.echo(f"{job.title} {'submitted' if submitted.is_changed else 'unchanged'}")
            target.say(f"`tfyard logs -f {name}` follows it")
            return 0
        code = _end_or_interrupt(job, after, name, at_mlflow)
    if code is None:
        return INTERRUPT_CODE
    if after.on_finish and not (code == DELETED_CODE and _is_gone(client, submitted)):
        return _copy(client, submitted, Path(after.on_finish), submission.helper_image) or code
    return code


def _print_job(title: str, job: StoredTFJob, form: str) -> None:
    if form == "name":
        click.echo(title)
        return
    output.print_objects(output.OutputForm(form), [output.without_managed_fields(job.manifest)], single=True)


def _at_mlflow(
    prepared: PreparedSubmission, submission: Submission, after: AfterSubmission
) -> "AbstractContextManager[JobAtMLflow | None]":
    """What reports the job while it is followed."""
    if not prepared.reported_to or submission.dry_run:
        return nullcontext()
    if not after.follow:
        target.say("MLflow: nothing is reported without --follow")
        return nullcontext()
    from tfyard.remote.mlflow import JobAtMLflow  # 40 ms, which other jobs do not need

    source = submission.module or submission.target
    return JobAtMLflow(prepared.job, prepared.reported_to, source, target.say)


def _is_gone(client: SyncClient, job: StoredTFJob) -> bool:
    """Whether the job was deleted; the exit code alone does not tell, because a task may end with the same."""
    try:
        return bool(client.send(requests.get(job.path))["metadata"].get("deletionTimestamp"))
    except NotFound:
        return True


def _upload(client: SyncClient, plan: Plan) -> None:
    from tfyard.remote.submitting import code_store  # also with asyncio

    sent = 0
    with progress_bar.shown() as progress:

        def advance(now: int, _: int) -> None:
            nonlocal sent
            progress.advance(now - sent)
            sent = now

        progress.begin(plan.files, plan.size)
        interrupts.run(code_store.upload(client.access, plan, progress.say, advance))


def _end_or_interrupt(
    job: OnCluster, after: AfterSubmission, name: str, at_mlflow: "JobAtMLflow | None"
) -> int | None:
    """Wait for the end of the job: its exit code, or None after Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return _end(job, after, at_mlflow)
    except KeyboardInterrupt:
        target.say("the job keeps running; next:")
        for words in ("logs -f", "stop", "delete"):
            option = f" --mlflow {at_mlflow.uri}" if at_mlflow and words == "logs -f" else ""
            click.echo(f"  tfyard {words} {name}{option}", err=True)
        return None


def _end(job: OnCluster, after: AfterSubmission, at_mlflow: "JobAtMLflow | None") -> int:
    """Wait for the end of the job and return its exit code."""
    if after.follow:
        options = PrinterOptions(follow=True, folds=not after.verbose)
        return print_logs(job, options, at_mlflow.note if at_mlflow else None)
    over = until(job, "succeeded", (), math.inf)
    click.echo(harmless(over.text), err=over.code != 0)
    return over.code


def _copy(client: SyncClient, job: StoredTFJob, folder: Path, image: str) -> int:
    """Copy the outputs of the job; the result is 1 if not everything could be copied."""
    from tfyard.sdk.cluster_streams import ClusterStreams  # with aiohttp 200 ms, only for --on-finish

    streams = ClusterStreams(client.access, job, target.say)
    with progress_bar.shown() as progress:
        copied = interrupts.run(streams.copy_outputs(folder, HelperOptions(image=image), progress))
    for each in copied:
        progress_bar.report(each)
    return int(any(each.problems for each in copied))
