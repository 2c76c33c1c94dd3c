"""Submits a `Job` to a cluster, by the code of `tfyard submit`."""

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import asdict, replace

from tfyard import formats
from tfyard.errors import Invalid
from tfyard.kube.sync import SyncClient
from tfyard.model import Manifest
from tfyard.remote.jobs import Found
from tfyard.remote.prepare import OUT, OUT_SIZE, OUT_VARIABLE, Prepared, Submission, prepare
from tfyard.remote.submission import submit_prepared
from tfyard.sdk.job import Source

LOG = logging.getLogger("tfyard")


def submit(client: SyncClient, source: Source, asked: Submission) -> Found:
    """`asked`: without what the source says."""
    with _file(source) as target:
        whole = Submission(**{**asdict(asked), **asdict(source.options), "target": target})
        prepared = prepare(whole, client.access.namespace)
    for problem in prepared.warnings:
        LOG.warning("%s", Invalid([problem]))
    return submit_prepared(client, _with_output(prepared, source), whole, LOG.info)


@contextmanager
def _file(source: Source) -> Iterator[str]:
    """The job file, which is removed again if it was on no disk."""
    if not source.text:
        yield source.options.target
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.yaml"
        path.write_text(formats.to_yaml(_words(source)), encoding="utf-8")
        yield str(path)


def _words(source: Source) -> Manifest:
    """Its code is found from any folder. A script has a volume for what it writes, as with `tfyard submit`."""
    (document,) = formats.read(source.text)
    words: Manifest = dict(document.data)
    job = formats.load(document)
    if job.code is not None and job.code.kind == "folder":
        given = words["code"] if isinstance(words["code"], dict) else {}
        words["code"] = {**given, "path": os.path.abspath(job.code.source)}  # noqa: PTH100
    if source.script and "volumes" not in words:
        words["volumes"] = {"out": {"claim": f"{words['name']}-out", "size": OUT_SIZE, "at": OUT}}
        words["env"] = {OUT_VARIABLE: OUT, **words.get("env", {})}
    return words


def _with_output(prepared: Prepared, source: Source) -> Prepared:
    """The claim of a script's volume gets the class and the access that this cluster offers."""
    is_ours = bool(source.script) and [each["metadata"]["name"] for each in prepared.job.objects] == [
        f"{prepared.job.name}-out"
    ]
    return replace(prepared, makes_output=is_ours)
