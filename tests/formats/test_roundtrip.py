"""A job that is written and read back is the same, except for what the writer reports as lost."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.formats.samples import again
from tfyard import formats
from tfyard.model import Job, Role

names = st.from_regex(r"[a-z]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Co", "Cn"]), max_size=12)
words = st.sampled_from(
    ["on", "off", "010", "1:30", "1e3", "~", "null", "", "x", "$(A)", "a: b", "# no", "é\n b"]
)
values = words | texts
labels = st.dictionaries(names, names, min_size=1, max_size=2)
paths = names.map(lambda name: f"/{name}")
counts = st.integers(0, 5)
seconds = st.integers(1, 300_000_000)
quantities = st.sampled_from(["1", "500m", "8Gi", "1.5"])


def options(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


sources = st.one_of(
    names.map(lambda name: {"nfs": f"{name}:/export"}),
    names.map(lambda name: {"claim": name}),
    st.builds(
        lambda name, extra: {"claim": name, **extra},
        names,
        st.just({"size": "5Gi", "access": "ReadWriteOnce"}),
    ),
    names.map(lambda name: {"azureFile": {"share": name, "secret": "s"}}),
    paths.map(lambda path: {"hostPath": path}),
    st.just({"emptyDir": {}}),
    names.map(lambda name: {"configMap": name}),
    names.map(lambda name: {"secret": name}),
)


@st.composite
def volume_words(draw: st.DrawFn) -> dict[str, Any]:
    by_name = draw(st.dictionaries(names, sources, min_size=1, max_size=2))
    extra = options(subPath=names, readOnly=st.just(True))
    return {name: {**source, "at": f"/{name}", **draw(extra)} for name, source in by_name.items()}


overlays = options(
    metadata=options(finalizers=st.just(["example.org/a"])),
    spec=options(
        priorityClassName=names,
        terminationGracePeriodSeconds=counts,
        containers=st.just([{"name": "tensorflow", "tty": True}, {"name": "side", "image": "b"}]),
        initContainers=st.just([{"name": "init", "image": "c", "args": ["x"]}]),
    ),
)
pod_words: dict[str, st.SearchStrategy[Any]] = {
    "run": st.lists(values, min_size=1, max_size=3) | words.filter(bool),
    "workdir": paths,
    "env": st.dictionaries(names, values, min_size=1, max_size=3),
    "secrets": st.just({"TOKEN": "my/token"}),
    "cpu": quantities,
    "memory": st.sampled_from(["1Gi", "8Gi", "500M", "1.5Gi"]),
    "gpu": st.integers(0, 4) | st.just({"amd.com/gpu": 2}),
    "restart": st.sampled_from(["never", "on-failure", "always", "exit-code"]),
    "port": st.integers(1, 65_535),
    "volumes": volume_words(),
    "labels": labels,
    "annotations": labels,
    "pullSecret": names | st.lists(names, min_size=2, max_size=2, unique=True),
    "serviceAccount": names,
    "nodeSelector": labels,
    "node": names,
    "tolerations": st.just([{"key": "gpu", "operator": "Exists"}]),
    "spread": st.sampled_from(["prefer", "require"]),
    "overlay": overlays,
}
roles = st.integers(1, 5) | options(count=counts, **pod_words)
one = st.just(1) | options(**pod_words)
job_words = st.fixed_dictionaries(
    {"name": names, "image": st.just("example/a:1"), "worker": roles},
    optional={
        **pod_words,
        "namespace": names,
        "code": st.sampled_from([".", "https://a.example/b.git#main", "https://a.example/b.zip", "a.git"])
        | st.just({"path": "https", "at": "/elsewhere"})
        | st.just({"path": "sub.git"})
        | st.just({"from": "sub", "claim": "code", "at": "/src"})
        | st.just({"from": "https://a.example/b.git#main"}),
        "chief": one,
        "ps": roles,
        "evaluator": one | options(grace=seconds),
        "deadline": seconds | st.sampled_from(["90s", "1h30m", "2d"]),
        "retries": counts,
        "keepFor": seconds | st.just(0),
        "clean": st.sampled_from(["all", "running", "none"]),
        "success": st.sampled_from(["chief", "all-workers"]),
        "suspend": st.booleans(),
        "dynamic": st.booleans(),
        "queue": names,
        "gang": st.booleans()
        | options(queue=names, priorityClass=names, timeout=seconds, atLeast=st.just(0)),
        "tensorboard": paths
        | st.fixed_dictionaries(
            {"logs": paths},
            optional={"image": names, "service": st.just("NodePort"), "volumes": volume_words()},
        ),
        "dialect": st.sampled_from(["tf2", "kubeflow", "tf1"]),
        "services": st.sampled_from(["shared", "per-replica"]),
    },
)

volumes = st.sampled_from([
    {"name": "a", "nfs": {"server": "s", "path": "/x"}},
    {"name": "b", "nfs": {"server": "s", "path": "/x", "readOnly": True}},
    {"name": "c", "persistentVolumeClaim": {"claimName": "c"}},
    {"name": "d", "hostPath": {"path": "/d", "type": "Directory"}},
    {"name": "e", "emptyDir": {"medium": "Memory"}},
    {"name": "f", "configMap": {"name": "f", "items": [{"key": "k", "path": "p"}]}},
    {"name": "g", "csi": {"driver": "x"}},
])  # fmt: skip


@st.composite
def templates(draw: st.DrawFn) -> dict[str, Any]:
    pod_volumes = draw(st.lists(volumes, max_size=3, unique_by=lambda volume: volume["name"]))
    mounts = [
        {"name": v["name"], "mountPath": f"/{v['name']}", **draw(MOUNT)}
        for v in pod_volumes
        if draw(st.booleans())
    ]
    container = {
        "name": "tensorflow",
        "image": "a",
        **draw(CONTAINER),
        **({"volumeMounts": mounts} if mounts else {}),
    }
    side = {"name": "side", "image": "b", "volumeMounts": mounts[:1]}
    spec = {"containers": draw(st.sampled_from([[container], [container, side], [side, container]]))}
    meta = draw(options(labels=labels, annotations=labels, creationTimestamp=st.none()))
    return {
        "metadata": meta,
        "spec": {**spec, **({"volumes": pod_volumes} if pod_volumes else {}), **draw(POD)},
    }


MOUNT = options(subPath=names, readOnly=st.booleans(), mountPropagation=st.just("None"))
RESOURCES = st.sampled_from([
    {}, {"limits": {"cpu": 4}}, {"limits": {"cpu": "4"}, "requests": {"cpu": "4"}}, {"requests": {"cpu": 0.5}},
    {"limits": {"cpu": 0}, "requests": {"cpu": 0}}, {"limits": {"nvidia.com/gpu": 1}},
    {"limits": {"nvidia.com/gpu": 1, "amd.com/gpu": "2"}},
    {"limits": {"memory": "1Gi", "ephemeral-storage": "1Gi"}},
    {"limits": {"nvidia.com/gpu": 2**40}}, {"claims": [{"name": "x"}]},
])  # fmt: skip
CONTAINER = options(
    command=st.lists(values, min_size=1, max_size=3) | st.just(["/bin/sh", "-c", "x"]),
    args=st.lists(values, max_size=2),
    env=st.lists(
        st.fixed_dictionaries({"name": names}, optional={"value": values})
        | st.just({"name": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
        max_size=3,
        unique_by=lambda entry: entry["name"],
    ),
    ports=st.sampled_from([
        [{"name": "tfjob-port", "containerPort": 3333}], [{"name": "tfjob-port", "containerPort": 2222}],
        [{"containerPort": 6006}, {"name": "tfjob-port", "containerPort": 4444}], [{"containerPort": 6006}],
        [{"name": "tfjob-port", "containerPort": 3333, "protocol": "TCP"}], [],
    ]),
    resources=RESOURCES,
    workingDir=paths,
    imagePullPolicy=st.just("Always"),
    livenessProbe=st.just({"exec": {"command": ["x"]}}),
)  # fmt: skip
POD = options(
    restartPolicy=st.just("OnFailure"),
    imagePullSecrets=st.just([{"name": "a"}]),
    serviceAccountName=names,
    nodeSelector=labels,
    tolerations=st.just([{"key": "gpu"}]),
    schedulerName=names,
    affinity=st.just({"nodeAffinity": {}}),
    hostNetwork=st.booleans(),
)
replicas = st.fixed_dictionaries(
    {"template": templates()},
    optional={
        "replicas": counts,
        "restartPolicy": st.sampled_from(["Always", "OnFailure", "Never", "ExitCode"]),
    },
)
run_policies = options(
    cleanPodPolicy=st.sampled_from(["All", "Running", "None"]),
    ttlSecondsAfterFinished=seconds | st.just(0),
    activeDeadlineSeconds=seconds,
    backoffLimit=counts,
    suspend=st.booleans(),
    managedBy=st.just("kueue.x-k8s.io/multikueue"),
    schedulingPolicy=options(queue=names, minResources=st.just({"cpu": "1"}), scheduleTimeoutSeconds=seconds),
)
ANNOTATIONS = options(**{
    "tfyard.dev/dialect": st.just("tf1"), "tfyard.dev/services": st.just("none"),
    "tfyard.dev/evaluator-grace": st.just("5m"), "tfyard.dev/together": st.just("true"),
    "tfyard.dev/stall": st.sampled_from(["15m", "1h30m, then restart"]), "own": names,
})  # fmt: skip


def _is_together(manifest: dict[str, Any]) -> bool:
    return "tfyard.dev/together" in manifest["metadata"].get("annotations", {})


OTHERS = {"PS": replicas, "Evaluator": replicas}
manifests = st.fixed_dictionaries({
    "apiVersion": st.sampled_from(["kubeflow.org/v1", "kubeflow.org/v1beta1"]),
    "kind": st.just("TFJob"),
    "metadata": st.fixed_dictionaries(
        {"name": names}, optional={"namespace": names, "labels": labels, "annotations": ANNOTATIONS}
    ),
    "spec": st.fixed_dictionaries(
        {"tfReplicaSpecs": st.fixed_dictionaries({"Worker": replicas}, optional=OTHERS)},
        optional={
            "runPolicy": run_policies,
            "successPolicy": st.just("AllWorkers"),
            "enableDynamicWorker": st.booleans(),
        },
    ),
}).filter(lambda each: not (_is_together(each) and each["spec"].get("enableDynamicWorker")))  # fmt: skip


def plain(job: Job, without: dict[str, Any]) -> Job:
    """The comparable part of a job: without what no format has, or what this one reports as lost."""
    roles = tuple(plain_role(role) for role in job.roles)
    fields = {"uid": "", "generation": 0, "api_version": "", "kind": "", "roles": roles, **without}
    board = fields.get("tensorboard", job.tensorboard)
    if board is not None:
        fields["tensorboard"] = replace(board, volumes=by_name(board.volumes), mounts=by_name(board.mounts))
    return replace(job, **fields)


def plain_role(role: Role) -> Role:
    template = plain_template(role.template)
    template["spec"].pop("restartPolicy", None)  # it never had an effect
    container = next(c for c in template["spec"]["containers"] if c["name"] == "tensorflow")
    command = [*container.pop("command", []), *container.pop("args", [])]
    for owner in (template["spec"], *template["spec"]["containers"]):
        for key in ("volumes", "volumeMounts"):  # their order means nothing
            owner[key] = by_name(owner.get(key, ()))
    return replace(role, template={**template, "command": command})


def by_name(items: Any) -> tuple[Any, ...]:
    return tuple(sorted(items, key=lambda item: str(item["name"])))


def plain_template(value: Any) -> Any:
    """To Kubernetes, null means the same as an absent field, and 4 the same quantity as "4"."""
    if isinstance(value, dict):
        parts = {key: plain_template(part) for key, part in value.items()}
        return {
            key: str(part) if key in ("cpu", "memory") else part
            for key, part in parts.items()
            if part not in (None, {}, [], False) or key == "emptyDir"
        }
    return [plain_template(item) for item in value] if isinstance(value, list) else value


NOT_IN_V1: dict[str, dict[str, Any]] = {
    "tensorboard": {"tensorboard": None},
    "code": {"code": None},
    "PersistentVolumeClaim": {"objects": ()},
}
NOT_IN_A_JOB_FILE: dict[str, dict[str, Any]] = {
    "labels of the job": {"labels": {}},
    "annotations of the job": {"annotations": {}},
}


def check(job: Job, version: formats.Version, known: dict[str, dict[str, Any]]) -> None:
    lost = formats.dump(job, version).lost
    without: dict[str, Any] = {}
    for words, fields in known.items():
        if any(line.startswith(words) for line in lost):
            without |= fields
    policy: dict[str, Any] = {}
    if any(line.startswith("managedBy") for line in lost):
        policy["managed_by"] = None
    if any("evaluator" in line for line in lost):
        policy["evaluator_grace"] = 0
    if policy:
        job = replace(job, run_policy=replace(job.run_policy, **policy))
    written = again(job, version)
    queue = {key: value for key, value in job.labels.items() if "kueue" in key}
    if "labels" in without:
        without["labels"] = queue
    assert plain(written, without) == plain(job, without)


@settings(max_examples=60, derandomize=True)
@given(job_words)
def test_a_job_file_written_as_v1_is_the_same_job(data: dict[str, Any]) -> None:
    check(formats.load(data), "v1", NOT_IN_V1)


@settings(max_examples=100, derandomize=True)
@given(job_words)
def test_a_job_file_written_as_a_job_file_is_the_same_job(data: dict[str, Any]) -> None:
    job = formats.load(data)
    assert formats.dump(job, "jobfile").lost == []
    check(job, "jobfile", {})


@settings(max_examples=40, derandomize=True)
@given(manifests)
def test_a_manifest_written_as_v1_is_the_same_job_and_loses_nothing(data: dict[str, Any]) -> None:
    job = formats.load(data)
    assert formats.dump(job, "v1").lost == []
    check(job, "v1", {})


@settings(max_examples=100, derandomize=True)
@given(manifests)
def test_a_manifest_written_as_a_job_file_is_the_same_job(data: dict[str, Any]) -> None:
    check(formats.load(data), "jobfile", NOT_IN_A_JOB_FILE)
