"""The CRDs: served versions, printer columns, and the defaults of each version.

Versions are not converted (`conversion: None`): the API server changes nothing but apiVersion, and drops fields
that the schema of either version does not list. So every version lists the fields of all. The defaults of a
version are set at admission and stored, because the version with which a job was created is not kept.
"""

from collections.abc import Collection

from tfyard.formats.tfjob import v1alpha1
from tfyard.formats.tfjob.fields import TFJobSpec
from tfyard.formats.tfjob.versions import SERVED, V1, VERSIONS
from tfyard.model import Manifest

from . import pods, rules, schema, status
from .schema import Schema

_ROLE = ".status.replicaStatuses"
_COLUMNS = (
    ("State", "string", ".status.phase", 0),
    ("Chief", "string", f"{_ROLE}['Chief','Master'].ready", 0),
    ("Workers", "string", f"{_ROLE}.Worker.ready", 0),
    ("PS", "string", f"{_ROLE}.PS.ready", 0),
    ("Restarts", "integer", ".status.restarts", 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
    ("Evaluator", "string", f"{_ROLE}.Evaluator.ready", 1),
    ("Started", "date", ".status.startTime", 1),
    ("Completed", "date", ".status.completionTime", 1),
    ("Message", "string", ".status.conditions[-1:].message", 1),
)
_SCALE = {
    "specReplicasPath": ".spec.tfReplicaSpecs.Worker.replicas",
    "statusReplicasPath": f"{_ROLE}.Worker.active",
    "labelSelectorPath": f"{_ROLE}.Worker.selector",
}


_V1ALPHA1, _TENSORFLOW = "kubeflow.org/v1alpha1", "tensorflow.org/v1alpha1"


def crds(served: Collection[str] = SERVED) -> tuple[Manifest, ...]:
    """The CRDs for TFJobs of these versions; v1, which is the stored version, is always served.
    They require Kubernetes 1.30, whose rules can use `optionalOldSelf`."""
    older = [name for name in VERSIONS if name in served and name not in (V1, _V1ALPHA1, _TENSORFLOW)]
    versions = [_v1(), *map(_older, older), *([_kubeflow_v1alpha1()] if _V1ALPHA1 in served else [])]
    kubeflow = _crd("kubeflow.org", _NAMES, versions)
    if _TENSORFLOW not in served:
        return (kubeflow,)
    return kubeflow, _crd("tensorflow.org", _OLD_NAMES, [_tensorflow_v1alpha1()])


def served_by(definition: Manifest) -> tuple[str, ...]:
    """The versions of TFJob that an installed CRD serves, or in which the cluster has stored jobs."""
    spec, stored = definition["spec"], (definition.get("status") or {}).get("storedVersions") or []
    names = {version["name"] for version in spec["versions"] if version.get("served")} | {*stored}
    return tuple(name for name in VERSIONS if name in {f"{spec['group']}/{each}" for each in names})


_NAMES = {
    "kind": "TFJob",
    "listKind": "TFJobList",
    "shortNames": ["tfj"],
    "categories": ["all", "ml", "training"],
}
_OLD_NAMES = {"kind": "TfJob", "listKind": "TfJobList", "shortNames": ["oldtfj"], "categories": ["training"]}
"""TfJob is not in the category `all`, because every `kubectl get all` would then print its deprecation warning. It
has a different short name, because kubectl would warn that `tfj` is ambiguous."""


def _crd(group: str, names: Manifest, versions: list[Manifest]) -> Manifest:
    names = {"plural": "tfjobs", "singular": "tfjob", **names}
    spec = {"group": group, "scope": "Namespaced", "names": names, "conversion": {"strategy": "None"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"tfjobs.{group}"},
        "spec": {**spec, "versions": versions},
    }


def _version(name: str, root: Schema, **more: object) -> Manifest:
    keys = ("name", "type", "jsonPath", "priority")
    columns = [dict(zip(keys, column, strict=True)) for column in _COLUMNS]
    columns = [{key: value for key, value in column.items() if value != 0} for column in columns]
    subresources = (
        {"status": {}, "scale": _SCALE} if "tfReplicaSpecs" in _spec_fields(root) else {"status": {}}
    )
    return {
        "name": name,
        "served": True,
        "storage": False,
        **more,
        "additionalPrinterColumns": columns,
        "subresources": subresources,
        "schema": {"openAPIV3Schema": root},
    }


def _spec_fields(root: Schema) -> Schema:
    fields: Schema = root["properties"]["spec"]["properties"]
    return fields


def _deprecated(api_version: str, kind: str = "TFJob") -> Manifest:
    text = f"{api_version} {kind} is deprecated; `tfyard convert` rewrites it as kubeflow.org/v1"
    return {"deprecated": True, "deprecationWarning": text}


# --- the versions


def _v1() -> Manifest:
    root = _root(_kubeflow_spec(pods.described()), status.described())
    return _version("v1", rules.for_kubeflow(root, describes_pods=True), storage=True)


def _older(api_version: str) -> Manifest:
    spec = _with_defaults(_kubeflow_spec(pods.open_template()), "cleanPodPolicy", api_version)
    root = rules.for_kubeflow(_root(spec, status.for_older()), describes_pods=False)
    return _version(api_version.split("/")[1], root, **_deprecated(api_version))


def _kubeflow_v1alpha1() -> Manifest:
    spec = _with_defaults(_kubeflow_spec(pods.open_template()), "cleanupPodPolicy", _V1ALPHA1)
    root = rules.for_kubeflow(_root(spec, status.for_v1alpha1()), describes_pods=False)
    return _version("v1alpha1", root, **_deprecated(_V1ALPHA1))


def _tensorflow_v1alpha1() -> Manifest:
    spec = _with_defaults(_v1alpha1_spec(), "cleanupPodPolicy", _TENSORFLOW)
    root = rules.for_tensorflow(_root(spec, status.for_v1alpha1()))
    return _version("v1alpha1", root, storage=True, **_deprecated(_TENSORFLOW, "TfJob"))


# --- their parts


def _root(spec: Schema, status_schema: Schema) -> Schema:
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": spec,
        "status": status_schema,
    }
    text = "A TensorFlow training job: roles, each with a number of tasks and a pod template."
    return {"type": "object", "description": text, "required": ["spec"], "properties": properties}


def _kubeflow_spec(template: Schema) -> Schema:
    spec = schema.of(TFJobSpec, {"template": template})
    old = {name: _of_old(part) for name, part in _v1alpha1_spec()["properties"].items()}
    spec = {**spec, "description": str(TFJobSpec.__doc__), "properties": {**old, **spec["properties"]}}
    queue: Schema = {
        "x-kubernetes-validations": [rules.rule("self == oldSelf", "schedulingPolicy.queue is immutable")]
    }
    for path in (("schedulingPolicy",), ("runPolicy", "schedulingPolicy")):
        spec = schema.within(spec, (*path, "queue"), queue)
    return schema.within(spec, ("tfReplicaSpecs", "*", "replicas"), {"default": 1})


def _of_old(part: Schema) -> Schema:
    return {**part, "description": f"Field of v1alpha1. {part['description']}"}


def _v1alpha1_spec() -> Schema:
    spec = schema.of(v1alpha1.TfJobSpec, {"template": pods.open_template()})
    return {**spec, "description": str(v1alpha1.TfJobSpec.__doc__)}


def _with_defaults(spec: Schema, clean: str, api_version: str) -> Schema:
    """The spec with the defaults of this version, in which `clean` is the field of the clean-up policy."""
    defaults = VERSIONS[api_version]
    spec = schema.within(spec, (clean,), {"default": defaults.clean})
    return schema.within(spec, ("dialect",), {"default": defaults.dialect})
