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
from tfyard.render import RenderedObject, RenderOptions, to_yaml

if TYPE_CHECKING:
    from tfyard.render.resource_config.load import TemplateResource


def is_config(data: object) -> bool:
    """Here, because most files are jobs, and importing the rest is slow."""
    return isinstance(data, dict) and "resources" in data and not {"apiVersion", "kind"} & data.keys()


def texts(document: formats.Document, name: str, options: RenderOptions, *, explain: bool) -> Iterator[str]:
    """The text of each resource. All problems of the config are reported before the first text."""
    from tfyard.render import notebook, prerequisites
    from tfyard.render.resource_config.load import TemplateResource, load
    from tfyard.render.resource_config.objects import jupyter_namespaces, render, replaced_images

    folder = Path() if name == "-" else Path(name).parent
    notes = Notes()
    resources = load(document.data, _present(document.data, folder, notes), notes)
    _stop_at_problems(notes, document)
    for sentence in replaced_images(resources):
        click.echo(f"tfyard: {sentence}", err=True)
    names = sorted({one.namespace for one in resources if not isinstance(one, TemplateResource)})
    objects = [prerequisites.namespace(name) for name in names] if options.create_namespace else []
    for one in render(resources):
        if isinstance(one, RenderedObject):
            objects.append(one)
            continue
        yield from _documents(objects, explain=explain)
        objects = []
        yield _filled(one, folder)
    yield from _documents(objects, explain=explain)
    for namespace in jupyter_namespaces(resources):
        for sentence in notebook.how_to_reach("jupyter", namespace, "LoadBalancer"):
            click.echo(f"tfyard: {sentence}", err=True)


def _documents(objects: list[RenderedObject], *, explain: bool) -> Iterator[str]:
    if objects:
        text = to_yaml(objects, explain=explain)
        yield text if text.startswith("---") else f"---\n{text}"


def _filled(resource: "TemplateResource", folder: Path) -> str:
    from tfyard.cli import template

    text = template.fill(str(folder / resource.path), {"properties": resource.properties}, trim=True)
    return text if text.lstrip().startswith("---") else f"---\n{text.rstrip()}\n"


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
