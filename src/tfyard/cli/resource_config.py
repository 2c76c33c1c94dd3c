"""`tfyard render` for a config with `resources`: finds and fills the templates that it imports."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfyard import formats
from tfyard.cli import files, problems
from tfyard.errors import Invalid
from tfyard.formats.declarations.reading import Notes
from tfyard.formats.yaml.source import locate
from tfyard.model import Manifest
from tfyard.render import RenderedObject, RenderOptions, to_yaml

if TYPE_CHECKING:
    from tfyard.cli.template import Manifests
    from tfyard.render.prerequisites import Assumed
    from tfyard.render.resource_config.load import TemplateResource


def texts(document: formats.Document, name: str, options: RenderOptions, *, explain: bool) -> Iterator[str]:
    """The text of the resources, in order. All problems of the config are reported before the first text."""
    from tfyard.render import notebook, prerequisites
    from tfyard.render.resource_config.load import load
    from tfyard.render.resource_config.objects import jupyter_namespaces, render, replaced_images

    folder = Path() if name == "-" else Path(name).parent
    notes = Notes()
    resources = load(document.data, _present(document.data, folder, notes), notes)
    _stop_at_problems(notes, document)
    for sentence in replaced_images(resources):
        click.echo(f"tfyard: {sentence}", err=True)
    parts = [one if isinstance(one, RenderedObject) else _filled(one, folder) for one in render(resources)]
    assumed = prerequisites.assumed([manifest for part in parts for manifest in _manifests(part)])
    if options.create_namespace:
        parts = [*map(prerequisites.namespace, assumed.namespaces), *parts]
    yield from (_text(part, explain=explain) for part in parts)
    _say_assumed(assumed, has_namespaces=options.create_namespace)
    for namespace in jupyter_namespaces(resources):
        for sentence in notebook.how_to_reach("jupyter", namespace, "LoadBalancer"):
            click.echo(f"tfyard: {sentence}", err=True)


def _manifests(part: "RenderedObject | Manifests") -> list[Manifest]:
    return [part.manifest] if isinstance(part, RenderedObject) else part.manifests


def _text(part: "RenderedObject | Manifests", *, explain: bool) -> str:
    text = to_yaml([part], explain=explain) if isinstance(part, RenderedObject) else part.text
    return text if text.lstrip().startswith("---") else f"---\n{text.rstrip()}\n"


def _filled(resource: "TemplateResource", folder: Path) -> "Manifests":
    from tfyard.cli import template

    return template.fill_for_config(str(folder / resource.path), resource.properties)


def _say_assumed(assumed: "Assumed", *, has_namespaces: bool) -> None:
    for name in () if has_namespaces else assumed.namespaces:
        way = f"kubectl create namespace {name}, or give --create-namespace"
        click.echo(f"tfyard: the namespace {name} must exist: {way}", err=True)
    for name in assumed.claims:
        click.echo(f"tfyard: the claim {name} must exist: it is not in this config", err=True)


def _present(data: Any, folder: Path, notes: Notes) -> dict[str, bool]:
    """Which imported files exist. One outside of the config's folder is refused unless its path is absolute:
    a config from somebody else must not read files that its user did not intend."""
    found: dict[str, bool] = {}
    imports = data.get("imports")
    for i, one in enumerate(imports if isinstance(imports, list) else []):
        path = one.get("path") if isinstance(one, dict) else None
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
        found[path] = exists and (inside or Path(path).is_absolute())
    return found


def _stop_at_problems(notes: Notes, document: formats.Document) -> None:
    if notes.problems:
        problems.report(locate(notes.problems, document), document, files.display_name(document.name))
        raise Invalid(())
