"""Options of a run, kept in its directory: with them and its job file, the run can be repeated."""

import os
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tfyard import formats
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.errors import Usage
from tfyard.local.prepared import PreparedRun
from tfyard.local.settings import RunOptions
from tfyard.model.corrupt_json import CORRUPT_JSON
from tfyard.overview.fixes import GivenAs

NAME = "asked.json"


class OptionsSource(Struct, frozen=True, kw_only=True):
    settings: RunOptions
    file: str
    """The file of the job: `code` is relative to its folder, and it may have other objects. Empty: a script."""
    is_config: bool = False
    """The file was a config with resources, which has no job file of its own."""
    given_as: GivenAs = "job-file"


def text(prepared: PreparedRun) -> str:
    """Options as JSON, without those that the job file of the run already has."""
    settings = prepared.settings
    kept = RunOptions(
        python=settings.python,
        env=() if settings.is_script else settings.env,
        mount=tuple(f"{name}={path}" for name, path in prepared.mounts.items()),
        gpus=settings.gpus,
        share_gpus=settings.share_gpus,
        tensorboard=settings.tensorboard and os.path.abspath(settings.tensorboard),  # noqa: PTH100
        attach=settings.attach,
        metric=settings.metric,
    )
    file = "" if settings.is_script else str(prepared.file)
    whole = OptionsSource(
        settings=kept, file=file, is_config=prepared.is_from_config, given_as=_given_as(prepared)
    )
    return msgspec.json.format(msgspec.json.encode(whole)).decode()


def _given_as(prepared: PreparedRun) -> GivenAs:
    """What the user gave. The job file of a run that is repeated was written by tfyard, so that run knows it."""
    if prepared.settings.is_script:
        return "script"
    if (Path(prepared.settings.target).parent / NAME).is_file():
        return given_as(RunDirectory(Path(prepared.settings.target).parent))
    is_job_file = isinstance(prepared.text, formats.Document) and formats.is_job_file(prepared.text.data)
    return "job-file" if is_job_file else "tfjob"


def given_as(run: RunDirectory) -> GivenAs:
    source = _read(run)
    return source.given_as if source else "job-file"


def log_dir(run: RunDirectory) -> str:
    """Folder that `--tensorboard` gave; empty: none."""
    source = _read(run)
    return (source.settings.tensorboard if source else None) or ""


def _read(run: RunDirectory) -> OptionsSource | None:
    try:
        return msgspec.json.decode((run.path / NAME).read_bytes(), type=OptionsSource)
    except (FileNotFoundError, *CORRUPT_JSON):
        return None


def repeated(run: RunDirectory) -> RunOptions:
    """Options that start the run's own job again."""
    job, source = run.path / "job.yaml", _read(run)
    if source is None or not job.exists():
        raise Usage(f"{run.name} ended too early to be repeated; `tfyard run FILE` starts its job")
    if source.is_config:
        raise Usage(f"{run.name} is of a config with resources; `tfyard run {source.file}` starts it again")
    sources = {file.name: file.read_text(encoding="utf-8") for file in run.source.glob("*")}
    return replace(source.settings, target=str(job), beside=source.file, sources=sources)
