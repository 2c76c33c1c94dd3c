"""`tfyard cp`: files between this machine and a job."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct
from msgspec.structs import replace

from tfyard.cli import cluster, target
from tfyard.errors import Usage

if TYPE_CHECKING:
    from tfyard.file_trees import Copied, Progress

CODE = "code"
"""In place of a path: what the job was submitted with."""


class InJob(Struct, frozen=True):
    """JOB:PATH or JOB:TASK:PATH."""

    job: str
    path: str
    task: str = ""


class Helper(Struct, frozen=True):
    """What is said of the pod that reads a claim."""

    image: str = ""
    user: int | None = None


class Ends(Struct, frozen=True):
    """Of a copy: one is in a job, the other is a path of this machine."""

    job: InJob
    here: str
    is_upload: bool
    into: bool
    """It gets its own name in the destination."""
    helper: Helper


@click.command("cp")
@click.argument("source", metavar="SOURCE")
@click.argument("destination", metavar="DESTINATION")
@click.option(
    "--helper-image",
    default="",
    metavar="IMAGE",
    help="Image of the pod that reads a claim; any with sh, find, tar and sha256sum. Default: busybox.",
)
@cluster.helper_user_option
@cluster.job_options
def command(
    source: str, destination: str, helper_image: str, helper_user: int | None, **options: Any
) -> None:
    """Copy files and folders from a job, or to it. One of SOURCE and DESTINATION is JOB:PATH, with the path as the
    tasks see it; JOB:TASK:PATH is of one task.

    What is on a claim can be copied at any time, also after the end of the job: a short-lived pod reads it. What
    is on none, while the task runs. Each file is compared by its checksum; what is there already is not copied
    again, so a copy that was interrupted continues where it was.

    A folder becomes DESTINATION, whether that exists or not. With a / at its end, or as `.`, DESTINATION is a
    folder to put it into. With a / at the end of SOURCE, only what is in the folder is put there.

    \b
    Examples:
      tfyard cp mnist:/out/model ./model         # the folder, or the file
      tfyard cp mnist:/out/model .               # the same, by its own name
      tfyard cp mnist:worker-1:/tmp/trace.json . # of a task that runs
      tfyard cp ./weights.h5 mnist:/out/         # onto its claim
      tfyard cp mnist:code ./code                # what it was submitted with
      tfyard cp @latest:/out/model . --local     # of the last run on this machine
    """
    ends = _ends(source, destination, Helper(helper_image, helper_user))
    found = target.find(ends.job.job, options)
    copied = _of_run(found, ends) if isinstance(found, target.LocalRun) else _of_job(found, ends)
    from tfyard.cli.progress_bar import report

    report(copied)
    sys.exit(1 if copied.problems else 0)


# --- the command line


def _ends(source: str, destination: str, helper: Helper) -> Ends:
    from tfyard.file_trees import goes_into

    ours, theirs = in_job(source), in_job(destination)
    into = goes_into(destination) and not goes_into(source)
    if ours and not theirs:
        return Ends(ours, destination, False, into, helper)
    if theirs and not ours:
        return Ends(theirs, source, True, into, helper)
    both = "both are" if ours else "none is"
    raise Usage(f"one of SOURCE and DESTINATION must be in a job, such as mnist:/out/model; {both}")


def in_job(text: str) -> InJob | None:
    """None: a path of this machine. As with scp, ./a:b is one."""
    job, colon, rest = text.partition(":")
    if not colon or not job or "/" in job:
        return None
    task, colon, path = rest.partition(":")
    return InJob(job, path, task) if colon and "/" not in task else InJob(job, rest)


# --- of this machine


def _of_run(found: target.LocalRun, ends: Ends) -> Copied:
    from pathlib import Path

    from tfyard.cli import interrupts, progress_bar
    from tfyard.local import copying

    if ends.job.path == CODE:
        raise Usage(f"{found.record.name} ran the code where it is: there is no copy of it")
    there = copying.locate(found.directory, found.record, ends.job.path, ends.job.task)
    here = Path(ends.here)
    interrupts.exit_by_exception()
    with progress_bar.shown() as progress:
        if ends.is_upload:
            return copying.copy(here, there, progress, into=ends.into)
        return copying.copy(there, here, progress, into=ends.into)


# --- of a cluster


def _of_job(found: target.ClusterJob, ends: Ends) -> Copied:
    from tfyard import extras
    from tfyard.cli import progress_bar

    with extras.needs("kubernetes", "tfyard cp"):
        from tfyard.cli import interrupts
        from tfyard.kube import transport  # noqa: F401
    found.client.close()
    copying = _copy_code if ends.job.path == CODE else _copy
    with progress_bar.shown() as progress:
        return interrupts.run(copying(found, ends, progress))


async def _copy(found: target.ClusterJob, ends: Ends, progress: Progress) -> Copied:
    from pathlib import Path

    from tfyard.kube import Client
    from tfyard.remote import copying
    from tfyard.remote.helper_pods import DEFAULT_IMAGE

    job, here = found.found, Path(ends.here)
    helper = copying.Options(image=ends.helper.image or DEFAULT_IMAGE, user=ends.helper.user)
    options = replace(helper, task=ends.job.task, into=ends.into)
    async with Client(found.client.access) as client:
        if ends.is_upload:
            return await copying.send(client, job, here, ends.job.path, progress, options)
        return await copying.fetch(client, job, ends.job.path, here, progress, options)


async def _copy_code(found: target.ClusterJob, ends: Ends, progress: Progress) -> Copied:
    """The folder is called so, wherever the tasks have it."""
    from pathlib import Path

    from tfyard.remote import code_store

    if ends.is_upload:
        raise Usage("the code of a job does not change: `tfyard submit` makes a new job")
    to = Path(ends.here) / CODE if ends.into else Path(ends.here)
    return await code_store.fetch(found.client.access, found.found, to, progress, ends.helper.image)
