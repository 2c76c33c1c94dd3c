"""`tfyard render`: manifests from a job file, a TFJob of any version, or a config of the workshop's."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from tfyard import code_folder, formats
from tfyard.cli import files, problems, workshop
from tfyard.cli.workshop import is_config
from tfyard.errors import Invalid, Usage
from tfyard.formats.metadata import DNS_LABEL
from tfyard.model import Job, ServiceMode
from tfyard.model.names import MAX_LABEL
from tfyard.render import Piece, SecretFile, Setting, text

FORMS = ("tfjob", "plain", "legacy")


class Wish(Struct, frozen=True, kw_only=True):
    """The command line, as given."""

    form: str
    namespace: str | None
    output: str | None
    setting: Setting


def checked_job(document: formats.Document) -> Job:
    """The job, with its problems told; whoever asks gets a valid one or none."""
    checked = formats.check(document)
    problems.report(checked.problems, document, document.name)
    if checked.errors or checked.job is None:
        raise Invalid(())
    return checked.job


def moved(job: Job, namespace: str) -> Job:
    """The job in another namespace, with all that is created beside it."""
    if not DNS_LABEL.fullmatch(namespace) or len(namespace) > MAX_LABEL:
        raise Usage(
            f"--namespace {namespace}: must be lower-case letters, digits and '-', at most {MAX_LABEL}"
        )
    objects = tuple(
        {**made, "metadata": {**made["metadata"], "namespace": namespace}} for made in job.objects
    )
    return replace(job, namespace=namespace, objects=objects)


@click.command("render")
@click.argument("name", metavar="FILE")
@click.option(
    "--as",
    "form",
    type=click.Choice(FORMS),
    default="tfjob",
    show_default=True,
    help="A TFJob for an operator; plain Jobs for any cluster; or a ReplicationController per task.",
)
@click.option("-o", "--output", metavar="FILE", help="Write here instead of to standard output.")
@click.option("-n", "--namespace", metavar="NAME", help="Namespace of the objects; default: the job's own.")
@click.option("--create-namespace", is_flag=True, help="Write the Namespace, too.")
@click.option("--nfs-claims", is_flag=True, help="Reach NFS by a PersistentVolume and a claim.")
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME/KEY=FILE",
    help="Write a Secret with the content of a file; repeatable.",
)
@click.option(
    "--services",
    type=click.Choice(["shared", "per-replica"]),
    help="One Service for all tasks or one each (plain only); default: the job's own choice.",
)
@click.option(
    "--domain", default="", metavar="NAME", help="Cluster domain of addresses, such as cluster.local."
)
@click.option("--explain", is_flag=True, help="Add comments that say where each thing came from.")
def command(name: str, output: str | None, explain: bool, **options: Any) -> None:
    """Write a job as Kubernetes manifests: offline, and the same bytes every time.

    FILE is a tfyard job file, a TFJob of any version, or a config with `resources` of the types
    tensorflow-cluster and jupyter-service.
    """
    files.refuse_input(output, [name], "choose another name")
    wish = _wish(output=output, **options)
    made = "".join(_texts(name, wish, explain=explain))
    if output is None:
        files.print_text(made)
    else:
        files.write_text(output, made)


def _wish(form: str, namespace: str | None, services: ServiceMode | None, **rest: Any) -> Wish:
    if services and form != "plain":
        raise Usage("--services is for --as plain; a TFJob says it with the word `services`")
    setting = Setting(
        namespace=rest["create_namespace"],
        nfs_claims=rest["nfs_claims"],
        secrets=tuple(_secret(words) for words in rest["secrets"]),
        services=services,
        domain=rest["domain"].strip("."),
    )
    return Wish(form=form, namespace=namespace, output=rest["output"], setting=setting)


def _secret(words: str) -> SecretFile:
    place, _, file = words.partition("=")
    secret, _, key = place.partition("/")
    if not (secret and key and file):
        raise Usage(f"--secret {words}: must be NAME/KEY=FILE, as in --secret registry/token=token.txt")
    return SecretFile(secret, key, files.read_bytes(file))


def _texts(name: str, wish: Wish, *, explain: bool) -> Iterator[str]:
    documents = files.read_documents(name)
    configs = [document for document in documents if is_config(document.data)]
    if not configs and not any(formats.is_job(document.data) for document in documents):
        raise Usage(f"{files.display_name(name)}: no TFJob, no tfyard job file and no config in it")
    for document in configs:
        _require_no_job_options(wish)
        yield from workshop.texts(document, name, wish.setting, explain=explain)
    documents = [document for document in documents if not is_config(document.data)]
    made = [_rendered(document, name, wish) for document in documents]
    many = sum(len(part) for part in made) > 1
    for part in made:
        body = text(part, explain=explain)
        yield body if body.startswith("---") or not many else f"---\n{body}"


def _require_no_job_options(wish: Wish) -> None:
    given = wish.setting
    if wish.form != FORMS[0] or wish.namespace or given.nfs_claims or given.secrets or given.domain:
        raise Usage("a config with resources takes -o, --create-namespace and --explain only")


def _rendered(document: formats.Document, name: str, wish: Wish) -> list[Piece]:
    data = document.data
    if not formats.is_job(data):
        return [Piece(data, "Taken over from the file as it is.")]
    job = checked_job(document)
    job = moved(job, wish.namespace) if wish.namespace else job
    try:
        code = code_folder.read(job, Path() if name == "-" else Path(name).parent, wish.output)
        return _render(wish.form, job, replace(wish.setting, code=code))
    except Invalid as error:
        problems.report(error.problems, document, document.name)
        raise Invalid(()) from None


def _render(form: str, job: Job, setting: Setting) -> list[Piece]:
    room = import_module(f"tfyard.render.{form}")
    for sentence in room.shortfalls(job):
        click.echo(f"tfyard: not in {form} objects: {sentence}", err=True)
    pieces: list[Piece] = getattr(room, form)(job, setting)
    return pieces
