"""What a field means: for the job file's words and for TFJob's fields, down into the pod.

The texts are those of the declarations themselves, and inside pods Kubernetes' own.
"""

import json
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec import inspect as mi

from tfyard.errors import Usage
from tfyard.formats.jobfile.words import JobFile
from tfyard.formats.tfjob.fields import TFJobSpec

from .reading import did_you_mean

PODSCHEMA = Path(__file__).parents[1] / "pods" / "data" / "podschema.json"


class Explanation(Struct, frozen=True, kw_only=True):
    path: str
    type: str
    description: str
    fields: dict[str, tuple[str, str]] = {}
    """What may stand below: name -> (type, first sentence)."""


def explain(path: str) -> Explanation:
    """`worker.gpu` is the job file's, `tfjob.spec.runPolicy` TFJob's; a bare `spec…` is TFJob's, too."""
    steps = [step for step in path.split(".") if step]
    if steps and steps[0].lower() in ("tfjob", "spec"):
        steps = steps[1:] if steps[0].lower() == "tfjob" else steps
        return _explain_tfjob(path, steps)
    return _walk(path, mi.type_info(JobFile), steps, str(JobFile.__doc__))


def _explain_tfjob(path: str, steps: list[str]) -> Explanation:
    text = "A TensorFlow training job, kubeflow.org/v1. Its fields: metadata, spec, status."
    if not steps:
        fields = {"spec": ("mapping", "What to train."), "status": ("mapping", "How it goes; read only.")}
        return Explanation(path="tfjob", type="object", description=text, fields=fields)
    if steps[0] != "spec":
        raise Usage(f"{steps[0]}: not explained; try tfjob.spec")
    return _walk(path, mi.type_info(TFJobSpec), steps[1:], str(TFJobSpec.__doc__))


def _walk(path: str, kind: mi.Type, steps: list[str], text: str) -> Explanation:
    """Down the declaration, step by step. Keys that users choose (a volume's name, a role) may be left out."""
    struct = _struct(kind)
    if not steps:
        fields = {f.encode_name: (_type_name(f.type), _sentence(_text(f.type))) for f in _fields(struct)}
        return Explanation(path=path, type=_type_name(kind), description=text, fields=fields)
    known = {field.encode_name: field for field in _fields(struct)}
    step, rest = steps[0], steps[1:]
    if step == "template" and step in known:
        return _PodSchema().walk(path, "PodTemplateSpec", rest)
    if step in known:
        return _walk(path, known[step].type, rest, _text(known[step].type))
    if isinstance(_container(kind), mi.DictType):
        return _walk(path, struct or kind, rest, str(struct.cls.__doc__) if struct else text)
    hint = did_you_mean(step, known) if known else "nothing stands below this field"
    raise Usage(f"{path}: there is no {step!r} here; {hint}")


def _container(kind: mi.Type) -> mi.Type:
    """The type without its description and without `or nothing`."""
    if isinstance(kind, mi.Metadata):
        return _container(kind.type)
    if isinstance(kind, mi.UnionType):
        options = [_container(option) for option in kind.types]
        return next((o for o in options if isinstance(o, mi.StructType | mi.DictType)), options[0])
    return kind


def _struct(kind: mi.Type) -> mi.StructType | None:
    kind = _container(kind)
    if isinstance(kind, mi.DictType):
        kind = _container(kind.value_type)
    if isinstance(kind, mi.ListType):
        kind = _container(kind.item_type)
    return kind if isinstance(kind, mi.StructType) else None


def _fields(struct: mi.StructType | None) -> tuple[mi.Field, ...]:
    return struct.fields if struct else ()


def _text(kind: mi.Type) -> str:
    if isinstance(kind, mi.Metadata):
        return str((kind.extra_json_schema or {}).get("description", "")) or _text(kind.type)
    return ""


def _sentence(text: str) -> str:
    return text.split(". ")[0].rstrip(".")


_TYPE_NAMES: dict[type[mi.Type], str] = {
    mi.IntType: "number",
    mi.FloatType: "number",
    mi.StrType: "text",
    mi.BoolType: "true or false",
    mi.ListType: "list",
    mi.DictType: "mapping",
    mi.StructType: "mapping",
    mi.AnyType: "anything",
}


def _type_name(kind: mi.Type) -> str:
    if isinstance(kind, mi.Metadata):
        return _type_name(kind.type)
    if isinstance(kind, mi.LiteralType):
        return " | ".join(str(value) or '""' for value in kind.values)
    if isinstance(kind, mi.UnionType):
        names = [_type_name(option) for option in kind.types if not isinstance(option, mi.NoneType)]
        return " or ".join(dict.fromkeys(names))
    return _TYPE_NAMES.get(type(kind), "text")


def pod_definitions() -> dict[str, Any]:
    """Everything that can stand in a pod template, by the names of Kubernetes' types."""
    definitions: dict[str, Any] = json.loads(PODSCHEMA.read_bytes())["definitions"]
    return definitions


class _PodSchema:
    """Kubernetes' own description of a pod template; large, so read only when asked about."""

    def __init__(self) -> None:
        self.definitions = pod_definitions()

    def walk(
        self, path: str, definition: str, steps: list[str], field: dict[str, Any] | None = None
    ) -> Explanation:
        fields = self.definitions.get(definition, {}).get("fields", {})
        if not steps:
            source = field or self.definitions.get(definition, {})
            below = {name: (self._type(f), _sentence(f.get("description", ""))) for name, f in fields.items()}
            kind = self._type(field) if field else "object"
            return Explanation(path=path, type=kind, description=source.get("description", ""), fields=below)
        if steps[0] not in fields:
            hint = did_you_mean(steps[0], fields) if fields else "nothing stands below this field"
            raise Usage(f"{path}: there is no {steps[0]!r} here; {hint}")
        chosen = fields[steps[0]]
        return self.walk(path, self._definition(chosen), steps[1:], chosen)

    def _definition(self, field: dict[str, Any]) -> str:
        inner = field.get("items") or field.get("values") or field
        return str(inner.get("ref", ""))

    def _type(self, field: dict[str, Any]) -> str:
        if "items" in field:
            return f"[]{self._type(field['items'])}"
        return str(field.get("ref") or field.get("type") or "object")
