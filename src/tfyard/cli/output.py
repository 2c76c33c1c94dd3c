"""kubectl's output formats: -o json, yaml, name, wide, jsonpath=TEMPLATE, custom-columns=SPEC."""

import sys
from collections.abc import Sequence
from typing import Any

import click
import msgspec
from msgspec import Struct

from tfyard.errors import Usage
from tfyard.model import Manifest
from tfyard.overview import table

TABLES = ("table", "wide", "name")
PLAIN = (*TABLES, "json", "yaml")
WITH_TEMPLATE = ("jsonpath", "custom-columns")


class Output(Struct, frozen=True):
    form: str
    template: str = ""

    @property
    def needs_objects(self) -> bool:
        """Whether the whole objects are printed, and not rows of a table."""
        return self.form not in TABLES


class _OutputType(click.ParamType):  # type: ignore[type-arg]
    name = "output"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Output:
        if isinstance(value, Output):
            return value
        form, equals, template = str(value).removeprefix("=").partition("=")  # kubectl takes -o=json, too
        if equals and form in WITH_TEMPLATE and template:
            _check(form, template)
            return Output(form, template)
        if not equals and form in PLAIN:
            return Output(form)
        known = ", ".join((*PLAIN, *(f"{name}=..." for name in WITH_TEMPLATE)))
        return self.fail(f"{value!r} is none of: {known}", param, ctx)


OUTPUT = _OutputType()


def as_list(documents: Sequence[Manifest]) -> Manifest:
    return {"apiVersion": "v1", "items": list(documents), "kind": "List", "metadata": {"resourceVersion": ""}}


def without_managed_fields(document: Manifest) -> Manifest:
    metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    return {**document, "metadata": metadata}


def print_objects(output: Output, documents: Sequence[Manifest], single: bool, headers: bool = True) -> None:
    """`single`: one object was asked for by its name, and not a list."""
    if output.form == "custom-columns":
        _print_columns(output.template, documents, headers)
        return
    whole = documents[0] if single else as_list(documents)
    if output.form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(whole, order="sorted"), indent=4).decode())
    elif output.form == "yaml":
        from tfyard import formats

        sys.stdout.write(formats.to_yaml(whole))
    else:
        from tfyard.overview import jsonpath

        sys.stdout.write(jsonpath.render(jsonpath.parse(output.template), whole))


def _print_columns(spec: str, documents: Sequence[Manifest], headers: bool) -> None:
    from tfyard.overview import jsonpath

    pairs = _columns(spec)
    paths = [jsonpath.parse_path(path) for _, path in pairs]
    rows = [[name for name, _ in pairs]] if headers else []
    for document in documents:
        found = (path.find(document, document) for path in paths)
        rows.append([",".join(map(jsonpath.text, values)) or "<none>" for values in found])
    for line in table.lines(rows):
        click.echo(line)


def _columns(spec: str) -> list[tuple[str, str]]:
    """NAME:.metadata.name,STATE:.status.phase -> pairs; a comma in brackets belongs to its path."""
    import re

    parts = re.findall(r"(?:\[[^\]]*\]|[^,\[])+", spec)
    pairs = [part.partition(":") for part in parts]
    if not pairs or any(not path for _, _, path in pairs):
        raise Usage(f"custom-columns={spec}: must be HEADER:PATH,HEADER:PATH, such as NAME:.metadata.name")
    return [(name, path) for name, _, path in pairs]


def _check(form: str, template: str) -> None:
    """Before a cluster is asked."""
    from tfyard.overview import jsonpath

    if form == "jsonpath":
        jsonpath.parse(template)
    else:
        for _, path in _columns(template):
            jsonpath.parse_path(path)
