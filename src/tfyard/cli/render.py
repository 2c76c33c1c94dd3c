"""`tfyard render`: manifests from a job file, a TFJob of any version, or a config with resources."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from tfyard import formats
from tfyard.cli import files, problems
from tfyard.cli.template_filling import Manifests, fill
from tfyard.errors import Invalid, Usage
from tfyard.formats.declarations.reading import Notes
from tfyard.formats.yaml.source import locate
from tfyard.job_input import code_folder
from tfyard.job_input.files import refuse_sweep
from tfyard.model import Job, Manifest, ServiceMode
from tfyard.render import (
    FORMS,
    RenderedObject,
    RenderOptions,
    SecretFile,
    code,
    notebook,
    prerequisites,
    render,
    to_yaml,
    unsupported,
)
from tfyard.render.prerequisites import Assumed
from tfyard.render.resource_config import objects
from tfyard.render.resource_config.load import TemplateResource, load


class Arguments(Struct, frozen=True, kw_only=True):
    """The options of the command."""

    form: str
    namespace: str | None
    output: str | None
    options: RenderOptions


@click.command("render")
@click.argument("name", metavar="FILE")
@click.option(
    "--as",
    "form",
    type=click.Choice(FORMS),
    default="tfjob",
    show_default=True,
    help="Form: a TFJob for an operator, plain Jobs for any cluster, or a ReplicationController per task.",
)
@click.option("-o", "--output", metavar="FILE", help="Write to this file instead of standard output.")
@click.option("-n", "--namespace", metavar="NAME", help="Namespace of the objects; default: the job's own.")
@click.option("--create-namespace", is_flag=True, help="Also write the Namespace.")
@click.option("--nfs-claims", is_flag=True, help="Mount NFS through a PersistentVolume and a claim.")
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
@click.option("--explain", is_flag=True, help="Add comments that say where each object comes from.")
def command(name: str, output: str | None, explain: bool, **options: Any) -> None:
    """Write a job as Kubernetes manifests: offline, the same bytes every time.

    FILE is a tfyard job file, a TFJob of any version, or a config with `resources` of the types
    tensorflow-cluster and jupyter-service.

    \b
    Examples:
      tfyard render job.yaml | kubectl apply -f -
      tfyard render job.yaml --as plain -o out.yaml    # for a cluster without an operator
      tfyard render job.yaml --explain                 # with comments: where each object comes from
    """
    files.refuse_input(output, [name], "choose another name")
    arguments = _arguments(output=output, **options)
    files.write_output(output, "".join(_texts(name, arguments, explain=explain)))


def _arguments(form: str, namespace: str | None, services: ServiceMode | None, **others: Any) -> Arguments:
    if services and form != "plain":
        raise Usage("--services is for --as plain; in a TFJob or job file, set `services`")
    options = RenderOptions(
        create_namespace=others["create_namespace"],
        nfs_claims=others["nfs_claims"],
        secrets=tuple(map(_secret, others["secrets"])),
        services=services,
        domain=others["domain"].strip("."),
    )
    return Arguments(form=form, namespace=namespace, output=others["output"], options=options)


def _secret(text: str) -> SecretFile:
    target, _, file = text.partition("=")
    secret, _, key = target.partition("/")
    if not (secret and key and file):
        raise Usage(f"--secret {text}: must be NAME/KEY=FILE, as in --secret registry/token=token.txt")
    return SecretFile(secret, key, files.read_bytes(file))


def _texts(name: str, arguments: Arguments, *, explain: bool) -> Iterator[str]:
    documents = files.read_documents(name)
    configs = [document for document in documents if formats.is_config(document.data)]
    if not configs and not any(formats.is_job(document.data) for document in documents):
        refuse_sweep(documents, name)
        raise Usage(f"{files.display_name(name)}: no TFJob, no tfyard job file and no config in it")
    for document in configs:
        _require_no_job_options(arguments)
        yield from _config_texts(document, name, arguments.options, explain=explain)
    documents = [document for document in documents if not formats.is_config(document.data)]
    rendered = [_rendered(document, name, arguments) for document in documents]
    many = sum(map(len, rendered)) > 1
    for manifests in rendered:
        text = to_yaml(manifests, explain=explain)
        yield text if text.startswith("---") or not many else f"---\n{text}"


def _require_no_job_options(arguments: Arguments) -> None:
    options = arguments.options
    if (
        arguments.form != FORMS[0]
        or arguments.namespace
        or options.nfs_claims
        or options.secrets
        or options.domain
    ):
        raise Usage("for a config with resources, only -o, --create-namespace and --explain are allowed")


def _rendered(document: formats.Document, name: str, arguments: Arguments) -> list[RenderedObject]:
    if not formats.is_job(document.data):
        return [RenderedObject(document.data, "Copied from the file without changes.")]
    job = files.load(document, name, arguments.namespace)
    try:
        code_files = code_folder.read(job, Path() if name == "-" else Path(name).parent, arguments.output)
        return _render(arguments.form, job, replace(arguments.options, code_files=code_files))
    except Invalid as error:
        problems.report(error.problems, document, document.name)
        raise Invalid(()) from None


def _render(form: str, job: Job, options: RenderOptions) -> list[RenderedObject]:
    for sentence in (*unsupported(form, job), *code.unsupported(job)):
        click.echo(f"tfyard: not in {form} objects: {sentence}", err=True)
    return render(form, job, options)


# --- a config with resources: finds and fills the templates that it imports


def _config_texts(
    document: formats.Document, name: str, options: RenderOptions, *, explain: bool
) -> Iterator[str]:
    """Yield the text of each resource, in order. All problems of the config are reported before the first text."""
    folder = Path() if name == "-" else Path(name).parent
    notes = Notes()
    resources = load(document.data, _present(document.data, folder, notes), notes)
    _stop_at_problems(notes, document)
    for sentence in objects.replaced_images(resources):
        click.echo(f"tfyard: {sentence}", err=True)
    parts = [
        part if isinstance(part, RenderedObject) else _filled(part, folder)
        for part in objects.render(resources)
    ]
    assumed = prerequisites.assumed([manifest for part in parts for manifest in _manifests(part)])
    if options.create_namespace:
        parts = [*map(prerequisites.namespace, assumed.namespaces), *parts]
    yield from (_text(part, explain=explain) for part in parts)
    _say_assumed(assumed, has_namespaces=options.create_namespace)
    for namespace in objects.jupyter_namespaces(resources):
        for sentence in notebook.how_to_reach("jupyter", namespace, "LoadBalancer"):
            click.echo(f"tfyard: {sentence}", err=True)


def _manifests(part: RenderedObject | Manifests) -> list[Manifest]:
    return [part.manifest] if isinstance(part, RenderedObject) else part.manifests


def _text(part: RenderedObject | Manifests, *, explain: bool) -> str:
    text = to_yaml([part], explain=explain) if isinstance(part, RenderedObject) else part.text
    return text if text.lstrip().startswith("---") else f"---\n{text.rstrip()}\n"


def _filled(resource: TemplateResource, folder: Path) -> Manifests:
    return fill(str(folder / resource.path), {"properties": resource.properties}, lenient=True)


def _say_assumed(assumed: Assumed, *, has_namespaces: bool) -> None:
    for name in () if has_namespaces else assumed.namespaces:
        way = f"kubectl create namespace {name}, or give --create-namespace"
        click.echo(f"tfyard: the namespace {name} must exist: {way}", err=True)
    for name in assumed.claims:
        click.echo(f"tfyard: the claim {name} must exist: it is not in this config", err=True)


def _present(data: Any, folder: Path, notes: Notes) -> dict[str, bool]:
    """Imported files by path, and whether each exists. A file outside of the config's folder is refused unless its
    path is absolute: a config from elsewhere must not read files that its user did not intend."""
    exists_by_path: dict[str, bool] = {}
    imports = data.get("imports")
    for i, entry in enumerate(imports if isinstance(imports, list) else []):
        path = entry.get("path") if isinstance(entry, dict) else None
        if not isinstance(path, str):
            continue
        try:
            inside = (folder / path).resolve().is_relative_to(folder.resolve())
            exists = (folder / path).is_file()
        except (OSError, ValueError, RuntimeError) as error:  # too long, not a path, a loop of links
            notes.error(("imports", i, "path"), f"is not a path: {error}", "", path)
            continue
        if not inside and not Path(path).is_absolute():
            notes.error(
                ("imports", i, "path"), "is outside of the config's folder", "use an absolute path", path
            )
        exists_by_path[path] = exists and (inside or Path(path).is_absolute())
    return exists_by_path


def _stop_at_problems(notes: Notes, document: formats.Document) -> None:
    if notes.problems:
        problems.report(locate(notes.problems, document), document, files.display_name(document.name))
        raise Invalid(())
