"""kubectl's output formats: -o json, yaml, name, wide, jsonpath=TEMPLATE, custom-columns=SPEC; and differences."""

import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import click
import msgspec
from msgspec import Struct

from tfyard.errors import Usage
from tfyard.model import Manifest
from tfyard.overview import jsonpath, table

TABLES = ("table", "wide", "name")
PLAIN = (*TABLES, "json", "yaml")
WITH_TEMPLATE = ("jsonpath", "custom-columns")
_COLOURS = {"+": "green", "-": "red", "#": "yellow"}


class OutputForm(Struct, frozen=True):
    form: str
    template: str = ""

    @property
    def needs_objects(self) -> bool:
        """Whether whole objects are printed instead of rows."""
        return self.form not in TABLES


class _OutputType(click.ParamType):  # type: ignore[type-arg]
    name = "output"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> OutputForm:
        if isinstance(value, OutputForm):
            return value
        form, equals, template = str(value).removeprefix("=").partition("=")  # kubectl takes -o=json, too
        if equals and form in WITH_TEMPLATE and template:
            _check(form, template)
            return OutputForm(form, template)
        if not equals and form in PLAIN:
            return OutputForm(form)
        known = ", ".join((*PLAIN, *(f"{name}=..." for name in WITH_TEMPLATE)))
        return self.fail(f"{value!r} is none of: {known}", param, ctx)


OUTPUT = _OutputType()


text_or_json = click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Format of the output."
)


def print_answers(answers: Sequence[object], *, single: bool) -> None:
    """Print JSON: a list, or the answer about the only job that was named."""
    print_json(answers[0] if single else answers)


def print_json(value: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value)).decode())


def as_list(documents: Sequence[Manifest]) -> Manifest:
    return {"apiVersion": "v1", "items": list(documents), "kind": "List", "metadata": {"resourceVersion": ""}}


def without_managed_fields(document: Manifest) -> Manifest:
    metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    return {**document, "metadata": metadata}


def print_objects(
    output: OutputForm, documents: Sequence[Manifest], single: bool, headers: bool = True
) -> None:
    """`single`: print the only object instead of a list."""
    if output.form == "custom-columns":
        _print_columns(output.template, documents, headers)
        return
    whole = documents[0] if single else as_list(documents)
    if output.form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(whole, order="sorted"), indent=4).decode())
    elif output.form == "yaml":
        from tfyard import formats  # 20 ms, which tables do not need

        sys.stdout.write(formats.to_yaml(whole))
    else:
        sys.stdout.write(jsonpath.render(jsonpath.parse(output.template), whole))


def _print_columns(spec: str, documents: Sequence[Manifest], headers: bool) -> None:
    pairs = _columns(spec)
    paths = [jsonpath.parse_path(path) for _, path in pairs]
    rows = [[name for name, _ in pairs]] if headers else []
    for document in documents:
        cells = (path.find(document, document) for path in paths)
        rows.append([",".join(map(jsonpath.text, values)) or "<none>" for values in cells])
    for line in table.lines(rows):
        click.echo(line)


def _columns(spec: str) -> list[tuple[str, str]]:
    """Headers and paths of NAME:.metadata.name,STATE:.status.phase; a comma in brackets belongs to its path."""
    parts = re.findall(r"(?:\[[^\]]*\]|[^,\[])+", spec)
    pairs = [part.partition(":") for part in parts]
    if not pairs or any(not path for _, _, path in pairs):
        raise Usage(f"custom-columns={spec}: must be HEADER:PATH,HEADER:PATH, such as NAME:.metadata.name")
    return [(name, path) for name, _, path in pairs]


def _check(form: str, template: str) -> None:
    """Reject a wrong template before the cluster is asked."""
    if form == "jsonpath":
        jsonpath.parse(template)
    else:
        for _, path in _columns(template):
            jsonpath.parse_path(path)


def coloured(line: str) -> str:
    """A line of a difference as a terminal shows it."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return line
    return click.style(line, fg=_COLOURS.get(line[:1]))
