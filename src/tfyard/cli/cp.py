"""`tfyard cp`: files between this machine and a job."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from tfyard.cli import cluster, interrupts, progress_bar, target
from tfyard.errors import Usage
from tfyard.file_trees import Copied, CopyError, goes_into
from tfyard.sdk.place import Copy, HelperOptions, Place
from tfyard.sdk.sweep_place import required_best

CODE = "code"
"""Word in place of a path: the code that the job was submitted with."""
STDOUT = "-"


class InJob(Struct, frozen=True):
    """A path in a job: JOB:PATH or JOB:TASK:PATH."""

    job: str
    path: str
    task: str = ""


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
    tasks see it; JOB:TASK:PATH is a path of one task.

    Files on a claim can be copied at any time, also after the end of the job: a short-lived pod reads them. Other
    files can be copied while the task runs. Each file is compared by its checksum, and equal files are not copied
    again, so a copy that was interrupted continues where it was.

    A folder becomes DESTINATION, whether that exists or not. With a / at its end, or as `.`, DESTINATION is the
    folder to copy into. With a / at the end of SOURCE, only the contents of the folder are copied. With `-` as
    DESTINATION, a file is written to standard output. Of a sweep, the files of its best trial are copied.

    \b
    Examples:
      tfyard cp mnist:/out/model ./model         # the folder, or the file
      tfyard cp mnist:/out/model .               # the same, by its own name
      tfyard cp mnist:worker-1:/tmp/trace.json . # from a running task
      tfyard cp ./weights.h5 mnist:/out/         # onto its claim
      tfyard cp mnist:/out/metrics.json - | jq .
      tfyard cp mnist:code ./code                # the code that it was submitted with
      tfyard cp @latest:/out/model . --local     # from the last run on this machine
      tfyard cp mnist-sweep:/out/model .         # from the best trial
    """
    job, copy = _read(source, destination, HelperOptions(image=helper_image, user=helper_user))
    place = target.find(job, options, whole=copy.is_upload)
    if (sweep := place.sweep()) is not None and not copy.is_upload:
        best = required_best(place.name, sweep).job
        target.say(f"{best} is the best trial so far")
        place = target.find(best, options)
    interrupts.exit_by_exception()
    copied = _to_standard_output(place, copy) if destination == STDOUT else _copied(place, copy)
    progress_bar.report(copied)
    sys.exit(1 if copied.problems else 0)


def _copied(place: Place, copy: Copy) -> Copied:
    with progress_bar.shown() as progress:
        return place.copy(copy, progress)


def _to_standard_output(place: Place, copy: Copy) -> Copied:
    """Copy into a temporary file first: a copy compares checksums and may begin again, which a pipe cannot. The
    file exists already, so a folder is refused."""
    with tempfile.NamedTemporaryFile() as file:
        here = Path(file.name)
        try:
            copied = _copied(place, replace(copy, here=here))
        except CopyError as problem:
            if file.name not in str(problem):
                raise
            raise Usage(f"{copy.path} is a folder; only a file can be written to standard output") from None
        if not copied.problems:
            with here.open("rb") as content:
                shutil.copyfileobj(content, sys.stdout.buffer)
            sys.stdout.flush()
    return replace(copied, to="standard output")


def _read(source: str, destination: str, helper: HelperOptions) -> tuple[str, Copy]:
    """The name of the job, and what is copied."""
    ours, theirs = in_job(source), in_job(destination)
    if bool(ours) == bool(theirs):
        both = "both are" if ours else "none is"
        raise Usage(f"one of SOURCE and DESTINATION must be in a job, such as mnist:/out/model; {both}")
    there = ours or theirs
    assert there
    copy = Copy(
        here=Path(destination if ours else source),
        path=there.path,
        task=there.task,
        is_code=there.path == CODE,
        is_upload=theirs is not None,
        into=goes_into(destination) and not goes_into(source),
        helper=helper,
    )
    return there.job, copy


def in_job(text: str) -> InJob | None:
    """The path in a job, or None for a path on this machine; as with scp, ./a:b is one."""
    job, colon, in_job = text.partition(":")
    if not colon or not job or "/" in job:
        return None
    task, colon, path = in_job.partition(":")
    return InJob(job, path, task) if colon and "/" not in task else InJob(job, in_job)
