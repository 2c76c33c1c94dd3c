"""What Kubernetes says of a pod, a node or a lease, the status of a TFJob and the status.json of a run are decoded
in one place each: two places drift apart, and then answer differently."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "tfyard"

PODS = frozenset({"views/pods.py"})
KUBELET = frozenset({"kubelet/pod_status.py"})
"""Writes the status that all others read; decodes none."""
ADDRESSES = frozenset({"views/pods.py", "node/pod.py", "node/pod_data.py"})
"""The node gives pods their addresses."""
OBJECTS = frozenset({"views/objects.py"})
NODES = frozenset({"kubelet/nodes.py"})
"""Writes the status and the lease of its node."""
LEASES = frozenset({"controller/lease.py"})
"""Writes the operator's lease, and keeps the fields of it that it does not know."""
DEFINITIONS = frozenset({"controller/crds.py", "remote/installing/doctor.py"})
"""Conditions of CRDs."""
SCRIPTS = frozenset({"render/scripts/end.py"})
"""Runs in a pod, where there is no tfyard."""
JOB_STATUS = frozenset({"views/tfjob_status.py"})
RUN_STATUS = frozenset({"backends/local/run_directory.py"})
SCHEMA = frozenset({"formats/crd/status.py"})
"""Describes the fields of a status; decodes none."""

POD_FIELDS = frozenset({"container_statuses", "init_container_statuses", "last_state", "restart_count"})
POD_SPEC_FIELDS = frozenset({"containers", "restart_policy"})
POD_KEYS = frozenset(
    {"containerStatuses", "initContainerStatuses", "lastState", "restartCount", "terminated"}
)
ADDRESS_KEYS = frozenset({"podIP"})
NODE_KEYS = frozenset({"allocatable"})
NODE_FIELDS = frozenset({"unschedulable"})
LEASE_KEYS = frozenset({"holderIdentity", "renewTime"})
LEASE_FIELDS = frozenset({"holder_identity", "renew_time"})
STATUS_KEYS = frozenset({"replicaStatuses", "endings"})
RUN_KEYS = frozenset({"status.json"})
DECODERS = frozenset({"convert", "decode", "Decoder", "Kind"})
ALLOWED = {
    "a pod": PODS | KUBELET,
    "the address of a pod": ADDRESSES | KUBELET,
    "pods of a list": frozenset(),
    "a node": OBJECTS | NODES,
    "a lease": OBJECTS | NODES | LEASES,
    "conditions": DEFINITIONS | SCRIPTS,
    "the status of a TFJob": JOB_STATUS | SCHEMA | RUN_STATUS,
    "the status.json of a run": RUN_STATUS,
}


def decoded(tree: ast.Module) -> Iterator[str]:
    """What a module decodes: by views of its own, by keys of plain data, or into the model's Status."""
    statuses = _names_of_status(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from _by_fields(_fields(node))
        elif isinstance(node, ast.Subscript) and _keys(node) == ["items"] and _has_pods(node.value):
            yield "pods of a list"
        elif isinstance(node, ast.Call | ast.Subscript) and _is_key_of_conditions(node):
            yield "conditions"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _by_key(node.value)
        elif isinstance(node, ast.Call) and _called(node) in DECODERS and statuses & _arguments(node):
            yield "the status of a TFJob"


def _by_fields(fields: set[str]) -> Iterator[str]:
    if fields & POD_FIELDS or fields >= POD_SPEC_FIELDS:
        yield "a pod"
    if fields & NODE_FIELDS:
        yield "a node"
    if fields & LEASE_FIELDS:
        yield "a lease"


def _keys(node: ast.Call | ast.Subscript) -> list[object]:
    """The keys that an expression reads of plain data, by `[...]` or `.get(...)`."""
    if isinstance(node, ast.Call):
        return [each.value for each in node.args if _called(node) == "get" and isinstance(each, ast.Constant)]
    is_read = isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Constant)
    return [node.slice.value] if is_read and isinstance(node.slice, ast.Constant) else []


def _is_key_of_conditions(node: ast.Call | ast.Subscript) -> bool:
    return "conditions" in _keys(node)


def _has_pods(asked: ast.expr) -> bool:
    """Whether a request for pods is part of an expression."""
    names = (each for each in ast.walk(asked) if isinstance(each, ast.Name | ast.Attribute))
    return any((each.id if isinstance(each, ast.Name) else each.attr) == "PODS" for each in names)


def _by_key(text: str) -> Iterator[str]:
    if text in POD_KEYS:
        yield "a pod"
    elif text in ADDRESS_KEYS:
        yield "the address of a pod"
    elif text in NODE_KEYS:
        yield "a node"
    elif text in LEASE_KEYS:
        yield "a lease"
    elif text in STATUS_KEYS:
        yield "the status of a TFJob"
    elif text in RUN_KEYS:
        yield "the status.json of a run"


def _fields(node: ast.ClassDef) -> set[str]:
    annotated = (each for each in node.body if isinstance(each, ast.AnnAssign))
    return {each.target.id for each in annotated if isinstance(each.target, ast.Name)}


def _names_of_status(tree: ast.Module) -> set[str]:
    """Under which names a module knows the model's Status; kube/ has another one."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    named = (each for node in imports if "model" in (node.module or "").split(".") for each in node.names)
    return {each.asname or each.name for each in named if each.name == "Status"}


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _arguments(node: ast.Call) -> set[str]:
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    return {name.id for each in given for name in ast.walk(each) if isinstance(name, ast.Name)}


DECODED = {
    module.relative_to(SOURCE).as_posix(): set(decoded(ast.parse(module.read_text())))
    for module in sorted(SOURCE.rglob("*.py"))
}


@pytest.mark.parametrize("what", ALLOWED)
def test_each_is_decoded_in_its_named_places_and_nowhere_else(what: str) -> None:
    places = {module for module, found in DECODED.items() if what in found}
    assert places - SCHEMA == ALLOWED[what] - SCHEMA


SECOND_PLACES = {
    "a view of its own": ("class Program(Struct):\n    last_state: Any = None", "a pod"),
    "a spec of its own": ("class Spec(Struct):\n    containers: Any\n    restart_policy: str", "a pod"),
    "plain data": ("def ended(pod): return pod['status']['containerStatuses'][0]", "a pod"),
    "a pod's address": ("pod['status'].get('podIP')", "the address of a pod"),
    "pods of a list": ("client.send(requests.get(requests.PODS.path('x')))['items']", "pods of a list"),
    "a node": ("node['status']['allocatable']", "a node"),
    "a view of nodes": ("class Spec(Struct):\n    unschedulable: bool = False", "a node"),
    "a lease": ("lease['spec'].get('holderIdentity')", "a lease"),
    "a view of leases": ("class Spec(Struct):\n    renew_time: Any = None", "a lease"),
    "conditions": ("any(each['type'] == 'Ready' for each in status.get('conditions') or [])", "conditions"),
    "a decoder": (
        "from tfyard.model import Status\nmsgspec.json.Decoder(Status)",
        "the status of a TFJob",
    ),
    "a conversion by another name": (
        "from ..model.status import Status as Stored\nmsgspec.convert({}, type=list[Stored])",
        "the status of a TFJob",
    ),
    "a part of the status": ("manifest['status'].get('endings')", "the status of a TFJob"),
    "a reader": ("(run.path / 'status.json').read_bytes()", "the status.json of a run"),
}


@pytest.mark.parametrize(("text", "what"), SECOND_PLACES.values(), ids=SECOND_PLACES.keys())
def test_the_rule_itself_finds(text: str, what: str) -> None:
    assert set(decoded(ast.parse(text))) == {what}


def test_the_rule_itself_lets_others_be() -> None:
    another = "from tfyard.kube.errors import Status\nmsgspec.json.Decoder(Status)"
    value = "class End(Struct):\n    exit_code: int"
    assert [*decoded(ast.parse(another)), *decoded(ast.parse(value))] == []
