"""Files as the terminal has them: problems on standard error, text on standard output, `-o FILE`."""

import os
import sys
from collections.abc import Iterable

import click
from msgspec.structs import replace

from tfyard import formats
from tfyard.cli import problems
from tfyard.errors import Usage
from tfyard.formats.declarations.reading import name_of
from tfyard.formats.metadata import DNS_LABEL
from tfyard.formats.workloads import kinds
from tfyard.job_input import files
from tfyard.job_input.files import (
    check,
    display_name,
    has_only_workloads,
    parse,
    read_bytes,
    read_documents,
    refuse_sweep,
    require_alone,
    write_text,
)
from tfyard.model import Job
from tfyard.model.names import MAX_LABEL

__all__ = [
    "check",
    "display_name",
    "has_only_workloads",
    "load",
    "parse",
    "passed_over",
    "print_text",
    "read_bytes",
    "read_documents",
    "read_jobs",
    "refuse_input",
    "require_alone",
    "write_output",
    "write_text",
]


def read_jobs(name: str) -> list[formats.Document]:
    """The documents of a file that are jobs. Raises Usage if there is none."""
    documents = read_documents(name)
    jobs = [document for document in documents if formats.is_job(document.data)]
    if not jobs:
        refuse_sweep(documents, name)
        raise Usage(f"{display_name(name)}: no TFJob and no tfyard job file in it")
    for document in documents:
        if document not in jobs:
            click.echo(passed_over(document), err=True)
    return jobs


def load(document: formats.Document, name: str | None = None, namespace: str | None = None) -> Job:
    """The job; warnings are printed with the lines that they are about. `name`: see `job_input.files.load`."""
    job, warnings = files.load(document, name)
    problems.report(warnings, document, document.name)
    return _in_namespace(job, namespace)


def _in_namespace(job: Job, namespace: str | None) -> Job:
    """The job and its claims in this namespace; without one, in the job's own."""
    if not namespace:
        return job
    if not DNS_LABEL.fullmatch(namespace) or len(namespace) > MAX_LABEL:
        raise Usage(
            f"--namespace {namespace}: must be lower-case letters, digits and '-', at most {MAX_LABEL}"
        )
    objects = tuple(
        {**claim, "metadata": {**claim["metadata"], "namespace": namespace}} for claim in job.objects
    )
    return replace(job, namespace=namespace, objects=objects)


def passed_over(document: formats.Document) -> str:
    return f"{document.name}: passed over: {_why(document.data)}"


def _why(data: object) -> str:
    if not isinstance(data, dict):
        return f'this is {name_of(data)}, not a job: a job file is a mapping such as "name: mnist"'
    if formats.is_config(data):
        return "it is a config with resources; `tfyard render` and `tfyard run` read it, and check it"
    if formats.is_sweep(data):
        return "it is a sweep file; `tfyard sweep` runs it, and `tfyard validate` checks it"
    if data.get("kind") is None:
        return "it has no kind; that of a job is TFJob"
    kind = str(data["kind"])
    shown = kind[:60] if kind.isprintable() else ascii(kind)[:60]
    if kinds.is_known(data) or kind == "Service":
        return f"this {shown} is not part of the job; keep it if you need it"
    return f"{shown} is not a kind that tfyard reads; TFJob is"


def print_text(text: str) -> None:
    """Print text as UTF-8, whatever the encoding of the terminal: the output may be redirected into a file."""
    click.echo(text.encode() if hasattr(sys.stdout, "buffer") else text, nl=False)


def refuse_input(output: str | None, names: Iterable[str], way_out: str) -> None:
    """Raise Usage if the output would overwrite an input file, under whatever name: there is no other copy of
    it."""
    for name in names:
        try:
            is_same = output is not None and os.path.samefile(output, name)  # noqa: PTH121
        except (OSError, ValueError):  # one of them is not there, or is `-`
            continue
        if is_same:
            raise Usage(f"-o {output} is the file that is read; {way_out}")


def write_output(name: str | None, text: str) -> None:
    """Write text to the file of `--output`, or to standard output."""
    if name is None:
        print_text(text)
    else:
        write_text(name, text)
