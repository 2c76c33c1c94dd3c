"""The meaning of each field of the job file and of TFJob, including the fields of pods.

The texts come from the declarations and, for pods, from Kubernetes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple, Union

from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import Usage
from tfyard.formats.jobfile.words import JobFile
from tfyard.formats.pods.fields import ROOT, definitions
from tfyard.formats.sweepfile.words import SweepFile
from tfyard.formats.tfjob.fields import TFJobSpec
from tfyard.formats.tfjob.v1alpha1 import TfJobSpec
from tfyard.model.spelling import closest, did_you_mean

from .structs import Type, fields, parts, type_of


class Explanation(Struct, frozen=True, kw_only=True):
    path: str
    type: str
    description: str
    fields: dict[str, tuple[str, str]] = {}
    """The fields below: name -> (type, first sentence)."""


class _DeclaredField(NamedTuple):
    """A field that tfyard or Kubernetes declares."""

    type: str
    description: str
    fields: Callable[[], dict[str, "_DeclaredField"]]
    entry: Callable[[], "_DeclaredField"] | None = None
    """The field below a key that users choose, such as a role or the name of a volume."""


def explain(path: str) -> Explanation:
    """`worker.gpu` is a word of the job file, `sweep.over` one of the sweep file, `tfjob.spec.runPolicy` or
    `spec.runPolicy` a field of TFJob."""
    steps = [step for step in path.split(".") if step]
    if steps and steps[0].lower() == "sweep":
        return _walk(path, _of_struct(SweepFile), steps[1:])
    if steps and steps[0].lower() in ("tfjob", "spec"):
        return _explain_tfjob(path, steps[1:] if steps[0].lower() == "tfjob" else steps)
    return _walk(path, _of_struct(JobFile), steps)


def _explain_tfjob(path: str, steps: list[str]) -> Explanation:
    text = "A TensorFlow training job, kubeflow.org/v1."
    if not steps:
        fields_below = {"spec": ("mapping", "Roles, and policies of the run")}
        return Explanation(path="tfjob", type="object", description=text, fields=fields_below)
    if steps[0] != "spec":
        raise Usage(f"{steps[0]}: not explained; try tfjob.spec")
    below = steps[1:]
    old = [name for name in fields(TfJobSpec) if name not in fields(TFJobSpec)]
    if not below or closest(below[0], [*fields(TFJobSpec), *old]) not in old:
        return _walk(path, _of_struct(TFJobSpec), below)
    explanation = _walk(path, _of_struct(TfJobSpec), below)
    is_ours = "template" not in below[:-1]
    note = "A field of v1alpha1; `tfyard convert` writes v1." if is_ours else ""
    return replace(explanation, description=f"{explanation.description} {note}".strip())


def _walk(path: str, node: _DeclaredField, steps: list[str]) -> Explanation:
    """Follows the steps down from the node. Keys that users choose may be left out of the path."""
    below = node.fields()
    if not steps:
        shown = {name: (field.type, _sentence(field.description)) for name, field in below.items()}
        return Explanation(path=path, type=node.type, description=node.description, fields=shown)
    step, following = steps[0], steps[1:]
    if step in below:
        return _walk(path, _pod_template() if step == "template" else below[step], following)
    if node.entry is not None:
        return _walk(path, node.entry(), following)
    hint = did_you_mean(step, below) if below else "this field has no fields of its own"
    raise Usage(f"{path}: field {step!r} not found; {hint}")


def _sentence(text: str) -> str:
    return text.split(". ")[0].rstrip(".")


# --- fields that tfyard declares


def _of_struct(cls: type[Struct]) -> _DeclaredField:
    return _DeclaredField("mapping", str(cls.__doc__), partial(_of_fields, cls))


def _of_fields(cls: type[Struct] | None) -> dict[str, _DeclaredField]:
    return {key: _of_type(type_of(field.annotation)) for key, field in fields(cls).items()} if cls else {}


def _of_type(declared: Type) -> _DeclaredField:
    cls = _struct_in(declared)
    is_map = declared.kind is dict or (
        declared.kind is Union and any(part.kind is dict for part in parts(declared))
    )
    entry = partial(_of_struct, cls) if cls else partial(_of_type, declared)  # a key may itself have dots
    return _DeclaredField(
        _type_name(declared), declared.description, partial(_of_fields, cls), entry if is_map else None
    )


def _struct_in(declared: Type) -> type[Struct] | None:
    """The Struct with the fields of this value, of its items or of its entries."""
    below = declared.args if declared.kind is Struct else map(_struct_in, parts(declared))
    return next((cls for cls in below if cls is not None), None)


_TYPE_NAMES: dict[Any, str] = {
    int: "number",
    float: "number",
    bool: "true or false",
    list: "list",
    dict: "mapping",
    Struct: "mapping",
    Any: "anything",
}


def _type_name(declared: Type) -> str:
    if declared.kind is Literal:
        return " | ".join(str(word) or '""' for word in sorted(declared.args))
    if declared.kind is Union:
        return " or ".join(dict.fromkeys(map(_type_name, parts(declared))))
    return _TYPE_NAMES.get(declared.kind, "text")


# --- fields that Kubernetes declares


def _pod_template() -> _DeclaredField:
    known = definitions()
    return _DeclaredField("object", known[ROOT]["description"], partial(_of_definition, ROOT, known))


def _of_definition(name: str, known: dict[str, Any]) -> dict[str, _DeclaredField]:
    return {
        key: _DeclaredField(
            _pod_type(field), field.get("description", ""), partial(_of_definition, _inner(field), known)
        )
        for key, field in known.get(name, {}).get("fields", {}).items()
    }


def _inner(field: dict[str, Any]) -> str:
    inner = field.get("items") or field.get("values") or field
    return str(inner.get("ref", ""))


def _pod_type(field: dict[str, Any]) -> str:
    if "items" in field:
        return f"[]{_pod_type(field['items'])}"
    return str(field.get("ref") or field.get("type") or "object")
