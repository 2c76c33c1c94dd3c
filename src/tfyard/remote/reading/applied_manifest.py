"""A TFJob as a user applied it, and what others have changed in it since, by its managedFields."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from tfyard import formats
from tfyard.kube import requests
from tfyard.model import Manifest
from tfyard.model.corrupt_json import CORRUPT_JSON
from tfyard.model.names import LAST_APPLIED

KUBECTL = "kubectl-client-side-apply"
"""The manager of the fields that `kubectl apply` writes."""
PARTS = (("spec",), ("metadata", "labels"), ("metadata", "annotations"))
"""The parts of a manifest that users write."""
APPLIED = ("apiVersion", "kind", "spec")
Fields = Mapping[str, Any]
Path = tuple[str, ...]


class AppliedManifest(Struct, frozen=True, kw_only=True):
    manifest: Manifest
    by: str
    """The tool that applied it."""
    changed: tuple[str, ...] = ()
    """The fields that others have changed since, each with the name of its writer."""
    is_whole: bool = True
    """Whether the manifest has those, too, as they were."""

    def lines(self) -> Iterator[str]:
        yield f"# as given (by {self.by})"
        if self.changed:
            missing = "changed since" if self.is_whole else "changed since, so missing here"
            more = "" if self.is_whole else "; what was removed leaves no trace"
            yield f"# {missing}: {', '.join(self.changed)}{more}"
        yield formats.to_yaml(self.manifest).removesuffix("\n")


def last_applied(manifest: Manifest) -> AppliedManifest | None:
    """The manifest as kubectl recorded it, else the fields that the last apply owns. None: it was not applied."""
    metadata = manifest["metadata"]
    entries = [each for each in metadata.get("managedFields") or [] if not each.get("subresource")]
    if text := (metadata.get("annotations") or {}).get(LAST_APPLIED):
        with suppress(*CORRUPT_JSON):  # it was edited
            document = msgspec.json.decode(text)
            own = [each for each in entries if each["manager"] == KUBECTL]
            changed = _changed(entries, own) if own else ()
            return AppliedManifest(manifest=document, by="kubectl apply", changed=changed)
    applied = [each for each in entries if each["operation"] == "Apply"]
    if not applied:
        return None
    last = max(applied, key=lambda each: str(each.get("time", "")))
    owned: Manifest = _owned(manifest, last["fieldsV1"])
    names = {key: metadata[key] for key in ("name", "namespace")}
    head = {key: manifest[key] for key in ("apiVersion", "kind")}
    return AppliedManifest(
        manifest={**head, **owned, "metadata": names | owned.get("metadata", {})},
        by="tfyard submit" if last["manager"] == requests.FIELD_MANAGER else last["manager"],
        changed=_changed(entries, [last]),
        is_whole=False,
    )


def stored_text(manifest: Manifest) -> str:
    """What the server has, as YAML."""
    text = formats.to_yaml({key: value for key, value in manifest.items() if key in APPLIED})
    return f"# as applied: with the defaults of the server\n{text}"


def _changed(entries: list[Manifest], own: list[Manifest]) -> tuple[str, ...]:
    """Paths of the fields that only other managers than the first one own, each with its last writer."""
    known = {path for each in own for path in _paths(each["fieldsV1"])}
    others = sorted((each for each in entries if each not in own), key=lambda each: str(each.get("time", "")))
    writers = {
        path: each["manager"] for each in others for path in _paths(each["fieldsV1"]) if path not in known
    }
    return tuple(f"{'.'.join(path)} ({manager})" for path, manager in writers.items())


def _paths(fields: Fields, above: Path = ()) -> Iterator[Path]:
    """The fields that managedFields name, without those that hold others."""
    below = {key: each for key, each in fields.items() if key != "."}
    if not below and any(above[: len(part)] == part for part in PARTS) and LAST_APPLIED not in above:
        yield above
    for key, each in below.items():
        kind, _, name = key.partition(":")
        yield from _paths(each, (*above, name if kind == "f" else f"[{name}]"))


def _owned(value: Any, fields: Fields) -> Any:
    """The part of a value that managedFields name; a field with nothing below is owned as a whole."""
    below = {key: each for key, each in fields.items() if key != "."}
    if not below:
        return value
    if isinstance(value, dict):
        names = {key[2:]: each for key, each in below.items()}
        return {name: _owned(each, names[name]) for name, each in value.items() if name in names}
    pairs = [(item, key) for item in value for key in below if _is_named(item, key)]
    return [_owned(item, below[key]) for item, key in pairs]


def _is_named(item: Any, key: str) -> bool:
    """Whether a key of managedFields names the item of a list: by its keys (`k:`) or its value (`v:`)."""
    asked = msgspec.json.decode(key[2:])
    return bool(item == asked if key.startswith("v:") else asked.items() <= item.items())
