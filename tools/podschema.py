"""Generates the pod schema that tfyard ships from Kubernetes' OpenAPI; run it once per Kubernetes release.

    go mod download -json k8s.io/kubernetes@v1.36.3        # prints the module's Dir
    python tools/podschema.py <Dir>/api/openapi-spec/swagger.json [1.36.3]

The file does not name its release, so it is taken from its path unless it is given. Two files are written, which
are identical for the same input:

    podschema.json   everything reachable from PodTemplateSpec, with descriptions: for `explain` and the CRD
    podfields.json   names and shapes only, small enough to be loaded by every command

and, for the tests of `render`, the fields of the other kinds that it writes:

    tests/render/data/kinds.json   the same shapes, with `!` after those of required fields

The shapes of podfields.json are words, because a thousand small objects would be slower to load:

    string integer boolean quantity int-or-string time object      scalars; `object` takes any keys
    Container                                                      a definition, recognized by its capital letter
    [X]       a list that a patch replaces        [X]@name   a list that a patch merges by `name`
    [X]@      a list of scalars that a patch unites          {X}   a mapping from any key to X
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = "io.k8s.api.core.v1.PodTemplateSpec"
DATA = Path(__file__).parent.parent / "src" / "tfyard" / "formats" / "pods" / "data"

KINDS_FILE = Path(__file__).parent.parent / "tests" / "render" / "data" / "kinds.json"
KINDS = {
    "v1": [
        "ConfigMap",
        "Namespace",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "ReplicationController",
        "Secret",
        "Service",
        "ServiceAccount",
    ],
    "apps/v1": ["Deployment", "StatefulSet"],
    "batch/v1": ["Job"],
    "rbac.authorization.k8s.io/v1": ["Role", "RoleBinding"],
}

Schema = dict[str, Any]

# In OpenAPI 2 all of these are strings; their Go types define what they accept.
SCALARS = {"Quantity": "quantity", "IntOrString": "int-or-string", "Time": "time", "FieldsV1": "object"}
RENAMED = {
    "description": "description",
    "type": "type",
    "format": "format",
    "x-kubernetes-list-type": "listType",
    "x-kubernetes-list-map-keys": "listMapKeys",
    "x-kubernetes-map-type": "mapType",
    "x-kubernetes-patch-merge-key": "patchMergeKey",
    "x-kubernetes-patch-strategy": "patchStrategy",
}


def main(arguments: list[str]) -> None:
    swagger = Path(arguments[0])
    release = arguments[1] if len(arguments) > 1 else release_of(swagger)
    definitions: dict[str, Schema] = json.loads(swagger.read_text(encoding="utf-8"))["definitions"]
    used = {name: definitions[name] for name in sorted(reachable(definitions, ROOT))}
    if len({short(name) for name in used}) != len(used):
        raise SystemExit("two definitions share a short name; give one of them a longer one here")
    DATA.mkdir(exist_ok=True)
    write(DATA / "podschema.json", release, {short(name): described(schema) for name, schema in used.items()})
    shapes = {short(name): names_only(schema) for name, schema in used.items() if "properties" in schema}
    write(DATA / "podfields.json", release, shapes)
    write(KINDS_FILE, release, kinds(definitions))


def kinds(definitions: dict[str, Schema]) -> dict[str, Any]:
    """Every definition that the kinds reach: kinds by apiVersion and name, others by name."""
    roots = {kind_id(version, kind): (version, kind) for version, names in KINDS.items() for kind in names}
    used = {name for root in roots for name in reachable(definitions, root)}
    result = {}
    for name in sorted(used):
        if "properties" in definitions[name] and short(name) not in SCALARS:
            version, kind = roots.get(name, ("", short(name)))
            result[f"{version}/{kind}" if version else kind] = with_required(definitions[name])
    return result


def kind_id(version: str, kind: str) -> str:
    group, _, number = version.rpartition("/")
    return f"io.k8s.api.{(group or 'core').partition('.')[0]}.{number}.{kind}"


def with_required(schema: Schema) -> dict[str, str]:
    required = schema.get("required", [])
    return {name: word + "!" * (name in required) for name, word in names_only(schema).items()}


def release_of(swagger: Path) -> str:
    match = re.search(r"kubernetes@v([0-9.]+)", str(swagger.resolve()))
    if match is None:
        raise SystemExit("give the Kubernetes release as second argument, such as 1.36.3")
    return match[1]


def reachable(definitions: dict[str, Schema], root: str) -> set[str]:
    seen: set[str] = set()
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += references(definitions[name])
    return seen


def references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for item in schema for name in references(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema["$ref"].rpartition("/")[2]] if isinstance(schema.get("$ref"), str) else []
    return own + [name for value in schema.values() for name in references(value)]


def short(name: str) -> str:
    return name.rpartition(".")[2]


def described(schema: Schema) -> Schema:
    result = field(schema)
    if "properties" in schema:
        result["required"] = sorted(schema.get("required", []))
        result["fields"] = {name: field(value) for name, value in sorted(schema["properties"].items())}
    return {key: value for key, value in result.items() if value != []}


def field(schema: Schema) -> Schema:
    result = {new: schema[old] for old, new in RENAMED.items() if old in schema}
    if "$ref" in schema:
        result["ref"] = short(schema["$ref"])
    if "items" in schema:
        result["items"] = field(schema["items"])
    if "additionalProperties" in schema:
        result["values"] = field(schema["additionalProperties"])
    return result


def names_only(schema: Schema) -> dict[str, str]:
    return {name: shape(value) for name, value in sorted(schema["properties"].items())}


def shape(schema: Schema) -> str:
    if "$ref" in schema:
        name = short(schema["$ref"])
        return SCALARS.get(name, name)
    if "items" in schema:
        merges = "merge" in schema.get("x-kubernetes-patch-strategy", "").split(",")
        key = schema.get("x-kubernetes-patch-merge-key", "")
        return f"[{shape(schema['items'])}]" + (f"@{key}" if merges else "")
    if "additionalProperties" in schema:
        return "{" + shape(schema["additionalProperties"]) + "}"
    return str(schema["type"])


def write(path: Path, release: str, definitions: dict[str, Any]) -> None:
    """Write one definition per line: that is compact, and the diff of a new release is readable."""
    rows = [f"{json.dumps(name)}:{dump(value)}" for name, value in sorted(definitions.items())]
    text = f'{{"kubernetes":{json.dumps(release)},"definitions":{{\n' + ",\n".join(rows) + "\n}}\n"
    path.write_text(text, encoding="utf-8")
    print(f"{path.name}: {len(rows)} definitions, {len(text.encode()):,} bytes")


def dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


if __name__ == "__main__":
    main(sys.argv[1:])
