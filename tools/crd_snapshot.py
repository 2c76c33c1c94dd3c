"""Writes to schemas/ which fields the CRDs of this release accept, and compares two releases.

    python tools/crd_snapshot.py

Once a release is out, its file is never written again: jobs that it accepted are stored in clusters. A test
compares today's CRDs with the last file. A file has one line per field, so that a change is easy to review.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tfyard import __version__
from tfyard.formats.crd.documents import crds
from tfyard.formats.tfjob.versions import VERSIONS

FOLDER = Path(__file__).resolve().parents[1] / "schemas"
WORDS = ("description", "title", "example", "externalDocs")
NESTED = ("properties", "items", "additionalProperties")
Fields = dict[str, dict[str, Any]]
"""Path of a field -> constraints of its value."""

AT_LEAST = ("minimum", "minLength", "minItems", "minProperties")
AT_MOST = ("maximum", "maxLength", "maxItems", "maxProperties")
OPEN = ("nullable", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string")
"""Keys that make a schema accept more."""


def snapshot() -> dict[str, Fields]:
    """Version -> its fields, for all versions that can be served."""
    versions = {}
    for definition in crds(VERSIONS):
        for version in definition["spec"]["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            about = {"storage": version["storage"], "subresources": sorted(version.get("subresources", {}))}
            fields = {"(version)": about, **dict(_fields(schema))}
            versions[f"{definition['spec']['group']}/{version['name']}"] = fields
    return versions


def _fields(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    constraints = {key: value for key, value in node.items() if key not in (*WORDS, *NESTED)}
    if rules := constraints.pop("x-kubernetes-validations", None):
        constraints["rules"] = sorted(rule["rule"] for rule in rules)
    yield path or ".", constraints
    for name, part in node.get("properties", {}).items():
        yield from _fields(part, f"{path}.{name}")
    for key, step in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(node.get(key), dict):
            yield from _fields(node[key], f"{path}{step}")


def text(snapshots: dict[str, Fields]) -> str:
    versions = (
        f"{json.dumps(version)}: {{\n"
        + ",\n".join(f"{json.dumps(path)}: {json.dumps(value)}" for path, value in fields.items())
        + "\n}"
        for version, fields in snapshots.items()
    )
    return "{\n" + ",\n".join(versions) + "\n}\n"


def last() -> Path:
    files = FOLDER.glob("crds-*.json")
    return max(files, key=lambda path: [int(part) for part in path.stem.removeprefix("crds-").split(".")])


def narrowed(before: dict[str, Fields], after: dict[str, Fields]) -> list[str]:
    """Problems with values that were accepted before and may be refused or lost now."""
    problems = [f"{version} is gone" for version in before if version not in after]
    for version, fields in before.items():
        for path, constraints in fields.items() if version in after else ():
            where = f"{version} {path}"
            if path not in after[version]:
                problems.append(f"{where} is gone")
            else:
                problems += [f"{where}: {change}" for change in _narrower(constraints, after[version][path])]
    return problems


def _narrower(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key) and _is_narrower(key, old.get(key), new.get(key)):
            yield f"{key} was {json.dumps(old.get(key))}, is {json.dumps(new.get(key))}"


def _is_narrower(key: str, old: Any, new: Any) -> bool:
    """Whether a changed constraint accepts less; None: no constraint. An unknown key must not change at all."""
    if key in AT_LEAST:
        return new is not None and new > (old if old is not None else float("-inf"))
    if key in AT_MOST:
        return new is not None and new < (old if old is not None else float("inf"))
    if key in OPEN:
        return bool(old)
    if key in ("required", "rules"):
        return not {*(new or ())} <= {*(old or ())}
    if key == "enum":
        return new is not None and (old is None or not {*old} <= {*new})
    if key == "subresources":
        return not {*old} <= {*new}
    if key in ("pattern", "format"):
        return new is not None
    return not (key == "default" and old is None)


if __name__ == "__main__":
    (FOLDER / f"crds-{__version__}.json").write_text(text(snapshot()))
