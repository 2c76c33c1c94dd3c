"""Admission without a webhook: the checks of `formats` that the server can do itself.

Keywords of the schema (required, minLength, maximum) are preferred: the server checks them only when the spec is
written. Rules (CEL) check everything else. The server evaluates every rule again whenever the status is written,
and each field that a rule reads makes the server copy the schemas of all fields beside it. So a rule begins with
the test that decides most jobs, reads few fields, and shares its evaluation with other rules of the same object.
The number of an object's fields copies nothing; CEL counts them only behind `dyn`, because it is meant for maps.

The API server rejects a CRD whose rules might cost too much, by its own estimate for the largest object that the
schema allows; hence the bounds on roles and containers. What CEL cannot check (the length of a namespace's name,
duplicate port names) the operator reports in a condition.
"""

import json

from tfyard.formats.declarations.reading import Path
from tfyard.formats.declarations.structs import fields
from tfyard.formats.limits import CLUSTER_ROOM, ELASTIC_ROLES, MAX_ENV_STRING, entry_size
from tfyard.formats.metadata import DNS_LABEL
from tfyard.formats.tfjob.fields import MAX_REPLICAS, RunPolicySpec
from tfyard.model import ROLES, TENSORFLOW_CONTAINER, WORKER
from tfyard.model.names import GPU, MAX_LABEL, OLD_GPU, tensorboard_name

from .pods import MAX_CONTAINERS
from .schema import Schema, within

Rule = dict[str, object]
MAX_ROLES = 10

_KNOWN = str([role.lower() for role in ROLES])
_CHIEFS = "['chief', 'master']"
_OLD_FIELDS = (
    "tfImage",
    "tensorboard",
    "terminationPolicy",
    "schedulerName",
    "cleanupPodPolicy",
    "RuntimeId",
)
_NEW_FIELDS = ("runPolicy", "successPolicy", "enableDynamicWorker", *fields(RunPolicySpec))


def _count(replica: str) -> str:
    return f"{replica}.?replicas.orValue(1)"


def _type(replica: str) -> str:
    """A replica's type or its default. With `orValue`, the server could not estimate length and cost."""
    return f"(has({replica}.tfReplicaType) ? {replica}.tfReplicaType : 'MASTER')"


def rule(expression: str, message: str, **more: object) -> Rule:
    return {"rule": expression, "message": message, **more}


def _together(*rules: Rule, unless: str = "false") -> Rule:
    """One rule for several of the same object, with the message of the first broken one. `unless`: a cheap test of
    objects that can break none of them."""
    text = json.dumps(rules[-1]["message"])
    for each in reversed(rules[:-1]):
        text = f"!({each['rule']}) ? {json.dumps(each['message'])} : {text}"
    expression = " && ".join(f"({each['rule']})" for each in rules)
    expression = expression if unless == "false" else f"({unless}) || ({expression})"
    return rule(expression, "the spec breaks a rule of TFJobs", messageExpression=text)


def for_kubeflow(schema: Schema, *, describes_pods: bool) -> Schema:
    """The schema with the rules of a version that accepts both forms: a map of roles, and v1alpha1's list."""
    schema = _for_list(_for_map(schema, describes_pods=describes_pods))
    old = (*_one_form(), *_said_once(), *_chief_exists(), _gang("self.?schedulingPolicy"))
    spec = [_together(*old, unless=_USUAL), _gang("self.?runPolicy.?schedulingPolicy"), _managed_by()]
    names = _names(_pods_of_map(), _pods_of_list())
    return _ruled(_ruled(schema, ("spec",), *spec), (), *names, _listed(_tasks_of_map(), _tasks_of_list()))


def for_tensorflow(schema: Schema) -> Schema:
    present = rule(
        "has(self.replicaSpecs) && size(self.replicaSpecs) > 0",
        "spec.replicaSpecs must be given: add at least one role",
    )
    schema = _ruled(_for_list(schema), ("spec",), present, *_chief_exists())
    return _ruled(schema, (), *_names(_pods_of_list()), _listed(_tasks_of_list()))


_USUAL = "size(dyn(self)) <= 2 && has(self.tfReplicaSpecs) && (size(dyn(self)) == 1 || has(self.runPolicy))"
"""Whether a spec has nothing but a map of roles and a run policy."""


def _ruled(schema: Schema, path: Path, *rules: Rule, **bounds: int) -> Schema:
    return within(schema, path, {**bounds, "x-kubernetes-validations": list(rules)})


# --- the whole object


def _names(*pods: str) -> list[Rule]:
    """Rules about names hold for new jobs only: the status of an old job must stay writable, whatever its name."""
    dns = rule(
        f"oldSelf.hasValue() || self.metadata.name.matches('^{DNS_LABEL.pattern}$')",
        "metadata.name must be lower-case letters, digits and '-', begin with a letter and not end with '-'",
        optionalOldSelf=True,
    )
    long = " && ".join(f"({fits})" for fits in pods)
    too_long = rule(
        f"size(self.metadata.name) <= {_ALWAYS_FITS} || ({long})",
        f"metadata.name is too long: with role and index, a pod's name has more than {MAX_LABEL} characters",
        optionalOldSelf=True,
    )
    return [dns, too_long]


_ALWAYS_FITS = MAX_LABEL - max(
    len(tensorboard_name("")), max(map(len, ROLES)) + len(str(MAX_REPLICAS - 1)) + len("--")
)
"""Length up to which a job's name fits with every role and every index."""


_MAP, _LIST = "self.spec.tfReplicaSpecs", "self.spec.replicaSpecs"
_COUNT = _count(f"{_MAP}[role]")


def _kept(count: str) -> str:
    """Whether a role of an old job has not grown. Its replicas are there: the server sets the default."""
    return f"oldSelf.?spec.?tfReplicaSpecs[?role].?replicas.orValue(-1) >= {count}"


def _pods_of_map() -> str:
    return f"!has({_MAP}) || {_MAP}.all(role, {_fits('role', _COUNT)} || {_kept(_COUNT)})"


def _pods_of_list() -> str:
    """Checked at creation only: an old list has no bound, so the server rejects rules that iterate over it."""
    room = MAX_LABEL - len(tensorboard_name(""))
    board = f"(!has(self.spec.tensorboard) || size(self.metadata.name) <= {room})"
    fits = f"{_LIST}.all(r, {_fits(_type('r'), _count('r'))})"
    return f"oldSelf.hasValue() || !has({_LIST}) || ({board} && {fits})"


def _fits(role: str, count: str) -> str:
    letters = f"size(self.metadata.name) + size({role}) + size(string({count} > 1 ? {count} - 1 : 0)) + 2"
    return f"{letters} <= {MAX_LABEL}"


def _listed(*tasks: str) -> Rule:
    """The rule against more tasks than TF_CONFIG can list. A rule does not see the namespace, whose name is in
    every entry: the shortest is assumed."""
    return rule(
        " && ".join(f"({fits})" for fits in tasks),
        f"too many tasks: TF_CONFIG lists them all, and Linux limits it to {MAX_ENV_STRING:,} bytes;"
        " use fewer tasks or a shorter name",
        optionalOldSelf=True,
    )


_LONGEST = entry_size("n" * MAX_LABEL, "n" * MAX_LABEL, "", MAX_REPLICAS)
_ALWAYS_LISTED = CLUSTER_ROOM // _LONGEST // MAX_ROLES
"""Tasks that each role of a job may have, whatever the names."""
_SHORTEST = entry_size("", "n", "", 0) - len("0")
"""Bytes of an entry beside the job's name, which it has twice, its role and its index."""


def _tasks_of_map() -> str:
    """The rule that the addresses of all tasks fit into a ConfigMap. Its variables have short names, because the
    server keeps the text once per version; `[x].all(y, …)` gives x the name y."""
    elastic, roles = "s.?enableDynamicWorker.orValue(false)", [each.lower() for each in ELASTIC_ROLES]
    small = f"m.all(role, {_count('m[role]')} <= {_ALWAYS_LISTED} || {_kept(_count('m[role]'))})"
    listing = f"m.exists(o, !(o.lowerAscii() in {roles}) && {_count('m[o]')} > 0)"
    is_listed = f"!{elastic} || r.lowerAscii() != '{WORKER.lower()}' || {listing}"
    size = f"m.map(r, {is_listed} ? {_bytes('r', _count('m[r]'))} : 0).sum()"
    fits = f"[s.tfReplicaSpecs].all(m, {small} || {size} <= {CLUSTER_ROOM})"
    return f"[self.spec].all(s, !has(s.tfReplicaSpecs) || {fits})"


def _tasks_of_list() -> str:
    size = f"{_LIST}.map(r, {_bytes(_type('r'), _count('r'))}).sum()"
    return f"oldSelf.hasValue() || !has({_LIST}) || {size} <= {CLUSTER_ROOM}"


def _bytes(role: str, count: str) -> str:
    """All entries of a role; see `entry_size`."""
    return f"{count} * (size({role}) + size(string({count})) + 2 * size(self.metadata.name) + {_SHORTEST})"


# --- the spec


def _one_form() -> list[Rule]:
    """Rules against mixing the two forms, whose fields every version has, because versions are not converted."""
    old = " || ".join(f"has(self.{name})" for name in _OLD_FIELDS)
    new = " || ".join(f"has(self.{name})" for name in _NEW_FIELDS)
    return [
        rule(
            "has(self.tfReplicaSpecs) != has(self.replicaSpecs)",
            "spec must have roles: tfReplicaSpecs, or replicaSpecs as in v1alpha1, and not both",
        ),
        rule(
            f"!({old}) || !has(self.tfReplicaSpecs)",
            f"{', '.join(_OLD_FIELDS)} must not be used with tfReplicaSpecs: they are fields of v1alpha1",
        ),
        rule(
            f"!has(self.replicaSpecs) || !({new})",
            "replicaSpecs (v1alpha1) takes no run policy but cleanupPodPolicy; `tfyard convert` rewrites it as v1",
        ),
    ]


def _said_once() -> list[Rule]:
    """Fields of the run policy are under spec (before v1) or under runPolicy (in v1), and must not contradict each
    other; a default of false does not count. CEL cannot compare two scheduling policies: their types differ."""
    gang = rule(
        "!has(self.schedulingPolicy) || !has(self.runPolicy) || !has(self.runPolicy.schedulingPolicy)",
        "schedulingPolicy is given twice, in spec and in spec.runPolicy: keep one of the two",
    )
    names = [name for name in fields(RunPolicySpec) if name not in ("suspend", "schedulingPolicy")]
    return [*map(_agrees, names), gang]


def _agrees(name: str) -> Rule:
    here, there = f"self.{name}", f"self.runPolicy.{name}"
    return rule(
        f"!has({here}) || !has(self.runPolicy) || !has({there}) || {here} == {there}",
        f"spec.runPolicy.{name} must not differ from spec.{name}: keep one of the two",
    )


def _managed_by() -> Rule:
    """Setting managedBy later is a change, too: two operators would have managed the job in turn."""
    text = "managedBy is immutable: two operators would manage one job"
    only_roles = "size(dyn(self)) == 1 && size(dyn(oldSelf)) == 1"
    return rule(f"{only_roles} || {_manager('self')} == {_manager('oldSelf')}", text)


def _manager(spec: str) -> str:
    nested = f"has({spec}.runPolicy) && has({spec}.runPolicy.managedBy)"
    flat = f"(has({spec}.managedBy) ? {spec}.managedBy : '')"
    return f"({nested} ? {spec}.runPolicy.managedBy : {flat})"


def _gang(policy: str) -> Rule:
    roles = "self.tfReplicaSpecs"
    size = f"{roles}.map(role, {_count(f'{roles}[role]')}).sum()"
    text = "schedulingPolicy.minAvailable must be at most the number of tasks: a larger gang never starts"
    minimum = f"{policy}.?minAvailable.orValue(0)"
    return rule(f"{minimum} == 0 || !has({roles}) || {minimum} <= {size}", text)


def _chief_exists() -> list[Rule]:
    chief = "self.terminationPolicy.chief"
    named = f"has(self.terminationPolicy) && has({chief}) && has(self.replicaSpecs)"
    name = f"(has({chief}.replicaName) ? {chief}.replicaName : 'MASTER')"
    index = f"{chief}.?replicaIndex.orValue(0)"
    missing = rule(
        f"!({named}) || self.replicaSpecs.exists(r, {_type('r')} == {name})",
        "spec.terminationPolicy.chief.replicaName: Missing ReplicaSpec for chief",
    )
    beyond = rule(
        f"!({named}) || self.replicaSpecs.all(r, {_type('r')} != {name} || {index} < {_count('r')})",
        "spec.terminationPolicy.chief.replicaIndex must be less than the replicas of the chief's type",
    )
    return [missing, beyond]


# --- the roles


def _for_map(schema: Schema, *, describes_pods: bool) -> Schema:
    path: Path = ("spec", "tfReplicaSpecs")
    known = rule(
        f"self.all(role, role.lowerAscii() in {_KNOWN})", f"unknown replica type; one of: {', '.join(ROLES)}"
    )
    schema = _ruled(schema, path, _together(known, *_chiefs()), maxProperties=MAX_ROLES, minProperties=1)
    schema = within(schema, (*path, "*"), {"required": ["template"]})
    schema = within(schema, (*path, "*", "template"), {"required": ["spec"]})
    schema = _for_containers(schema, (*path, "*", "template", "spec"))
    return _for_gpus(schema, (*path, "*", "template", "spec")) if describes_pods else schema


def _chiefs() -> list[Rule]:
    return [
        rule(
            f"self.filter(role, role.lowerAscii() in {_CHIEFS}).size() <= 1",
            "must not have more than 1 Chief or Master role: keep one of the two",
        ),
        rule(
            f"self.all(role, !(role.lowerAscii() in {_CHIEFS}) || {_count('self[role]')} <= 1)",
            "replicas of Chief or Master must be at most 1: a job has one",
        ),
        rule(
            "self.all(role, self.exists_one(other, other.lowerAscii() == role.lowerAscii()))",
            "a role is given twice, in different letter case: keep one of the two",
        ),
    ]


def _for_list(schema: Schema) -> Schema:
    path: Path = ("spec", "replicaSpecs")
    once = rule(
        f"self.all(a, self.exists_one(b, {_type('a')} == {_type('b')}))",
        "a tfReplicaType is given twice: merge the two",
    )
    schema = _ruled(schema, path, once, maxItems=MAX_ROLES, minItems=1)
    master = rule(
        f"{_type('self')} != 'MASTER' || {_count('self')} == 1",
        "replicas of a MASTER must be 1: a job has exactly one",
    )
    templated = rule(
        f"{_type('self')} == 'PS' || (has(self.template) && has(self.template.spec))",
        "template must be given: only a PS may omit it",
    )
    schema = _ruled(schema, (*path, "*"), master, templated)
    return _for_containers(schema, (*path, "*", "template", "spec"))


# --- the pods


def _for_containers(schema: Schema, spec: Path) -> Schema:
    named = rule(
        f"self.exists(c, c.name == '{TENSORFLOW_CONTAINER}')",
        f"must have at least one container with name {TENSORFLOW_CONTAINER}: it gets TF_CONFIG",
    )
    for containers in ("containers", "initContainers"):
        schema = within(schema, (*spec, containers), {"maxItems": MAX_CONTAINERS})
        schema = within(schema, (*spec, containers, "*"), {"required": ["name", "image"]})
        schema = within(schema, (*spec, containers, "*", "image"), {"minLength": 1})
    return _ruled(schema, (*spec, "containers"), named)


def _for_gpus(schema: Schema, spec: Path) -> Schema:
    limited = f"has(self.limits) && ('{GPU}' in self.limits || '{OLD_GPU}' in self.limits)"
    alone = rule(
        f"!has(self.requests) || !('{GPU}' in self.requests) || ({limited})",
        f"{GPU} must also be a limit, Kubernetes rejects a GPU request without one: move it to resources.limits",
    )
    schema = _ruled(schema, (*spec, "containers", "*", "resources"), alone)
    ports: Path = (*spec, "containers", "*", "ports", "*", "containerPort")
    return within(schema, ports, {"minimum": 1, "maximum": 65_535})
