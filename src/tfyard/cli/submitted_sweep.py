"""`tfyard submit sweep.yaml`: the part of `submit` that is about sweeps."""

from __future__ import annotations

import math
from collections.abc import Callable
from shlex import join
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from tfyard.cli import cluster, output, problems, target
from tfyard.cli.screen import sweep as screen
from tfyard.cli.waiting import until
from tfyard.errors import Usage
from tfyard.job_input.sweeps import SweepOptions, of_file
from tfyard.remote.sweeps import driver_job, driver_state, store
from tfyard.remote.sweeps.driving import DriveOnCluster
from tfyard.remote.sweeps.submission import PreparedSweep, prepare_sweep, submit
from tfyard.sdk.sweep_on_cluster import SweepOnCluster

if TYPE_CHECKING:
    from tfyard.cli.afterwards import AfterSubmission
    from tfyard.job_input.files import SweepGiven
    from tfyard.kube.sync import SyncClient
    from tfyard.remote.submitting.code_plan import Plan
    from tfyard.remote.submitting.submission import Submission


def prepared(given: SweepGiven, submission: Submission, namespace: str) -> PreparedSweep:
    """The sweep of the file. --name and --deadline are those of the whole."""
    if submission.mlflow:
        raise Usage("--mlflow is for one job: the trials of a sweep are not reported")
    own = SweepOptions(name=submission.name, deadline=submission.deadline)
    sweep = of_file(given, own)
    of_job = replace(submission, target=sweep.job, name=None, deadline=None)
    ready = prepare_sweep(sweep.spec, of_job, namespace)
    problems.report(ready.prepared.warnings, ready.prepared.text)
    return ready


def send(
    client: SyncClient,
    sweep: PreparedSweep,
    after: AfterSubmission,
    where: dict[str, Any],
    upload: Callable[[Plan], None],
) -> int:
    """Submits the sweep, and drives it if it is followed; the result is an exit code."""
    if after.on_finish:
        raise Usage("--on-finish is for one job: `tfyard cp TRIAL:/out DIR` copies the outputs of a trial")
    if after.follow:
        made = submit(client, sweep, store.here("command"), target.say, upload)
        return _drive(DriveOnCluster(client, made, target.say)) if made else 0
    sweep = replace(sweep, driver_image=where.get("driver_image") or "")
    driver = driver_job.checked(client, sweep)
    made = submit(client, sweep, store.driver_name("job"), target.say, upload)
    if made is None:
        return 0
    driver_job.create(client, made, driver, target.say)
    driver_state.wait_for_begin(client, made, driver, target.say)
    place = SweepOnCluster(client.access, made, target.say)
    name = join([made.name, *cluster.repeated(where)])
    if after.output != "text":
        _print(place, after.output)
        return 0
    if after.wait:
        over = until(place, "succeeded", (), math.inf)
        click.echo(over.text, err=over.code != 0)
        return over.code
    click.echo(f"{place.title} submitted")
    target.say(f"`tfyard describe {name}` shows its trials, `tfyard logs -f {name}` follows them")
    return 0


def _drive(driven: DriveOnCluster) -> int:
    return screen.follow(driven, "text", quiet=False)


def _print(place: SweepOnCluster, form: str) -> None:
    if form == "name":
        click.echo(place.title)
    else:
        output.print_objects(output.OutputForm(form), [place.manifest()], single=True)
