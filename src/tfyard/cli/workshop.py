"""A config with `resources` on its way to manifests: reads the templates that it imports, and fills them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tfyard import formats
from tfyard.cli import files, problems
from tfyard.errors import Invalid
from tfyard.formats.declarations.reading import Notes
from tfyard.formats.yaml.source import locate
from tfyard.render import Piece, Setting, text


def is_config(data: object) -> bool:
    """Told apart without importing the rest: most files are jobs."""
    return isinstance(data, dict) and "resources" in data and not {"apiVersion", "kind"} & data.keys()


def texts(document: formats.Document, name: str, setting: Setting, *, explain: bool) -> Iterator[str]:
    """Each part's text, told with all problems of the config before the first is written."""
    from tfyard.render import prerequisites
    from tfyard.render.workshop import Template, load, objects

    folder = Path() if name == "-" else Path(name).parent
    notes = Notes()
    present = _present(document.data, folder, notes)
    parts = [part for _, part in load(document.data, present, notes)]
    _stop_at_problems(notes, document)
    for sentence in objects.replaced(parts):
        click.echo(f"tfyard: {sentence}", err=True)
    spaces = sorted({part.namespace for part in parts if not isinstance(part, Template)})
    waiting = [prerequisites.namespace(space) for space in spaces] if setting.namespace else []
    for made in objects.render(parts):
        if isinstance(made, Piece):
            waiting.append(made)
            continue
        yield from _documents(waiting, explain=explain)
        waiting = []
        yield _filled(made, folder)
    yield from _documents(waiting, explain=explain)
    _tell_addresses(parts)


def _documents(pieces: list[Piece], *, explain: bool) -> Iterator[str]:
    if pieces:
        body = text(pieces, explain=explain)
        yield body if body.startswith("---") else f"---\n{body}"


def _filled(made: Any, folder: Path) -> str:
    from tfyard.cli import template

    body = template.fill(str(folder / made.path), {"properties": made.properties}, trim=True)
    return body if body.lstrip().startswith("---") else f"---\n{body.rstrip()}\n"


def _present(data: Any, folder: Path, notes: Notes) -> dict[str, bool]:
    """Which imported files are there. One outside of the config's folder is refused unless its path is
    absolute: a config from elsewhere must not reach for files that its reader did not mean."""
    found: dict[str, bool] = {}
    imports = data.get("imports")
    for i, one in enumerate(imports if isinstance(imports, list) else []):
        path = one.get("path") if isinstance(one, dict) else None
        if not isinstance(path, str):
            continue
        try:
            inside = (folder / path).resolve().is_relative_to(folder.resolve())
            is_there = (folder / path).is_file()
        except (OSError, ValueError, RuntimeError) as error:  # too long, not a path at all, a ring of links
            notes.error(("imports", i, "path"), f"is no path: {error}", "", path)
            continue
        if not inside and not Path(path).is_absolute():
            notes.error(("imports", i, "path"), "is outside of the config's folder", "give it absolute", path)
        found[path] = is_there and (inside or Path(path).is_absolute())
    return found


def _stop_at_problems(notes: Notes, document: formats.Document) -> None:
    if notes.problems:
        problems.report(locate(notes.problems, document), document, files.display_name(document.name))
        raise Invalid(())


def _tell_addresses(parts: list[Any]) -> None:
    from tfyard.render import notebook
    from tfyard.render.workshop.words import ClusterProperties, JupyterProperties

    for part in parts:
        has_jupyter = isinstance(part, ClusterProperties) and part.jupyter_config is not None
        if has_jupyter or isinstance(part, JupyterProperties):
            for sentence in notebook.how_to_reach("jupyter", part.namespace, "LoadBalancer"):
                click.echo(f"tfyard: {sentence}", err=True)
