"""Every rule for users' files: a wrong file, and the problem that is reported."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.reading import only
from tests.formats.samples import decide
from tfyard import errors, formats
from tfyard.formats.declarations.reading import MAX_PROBLEMS
from tfyard.model import Problem, format_path

Found = tuple[str, str, str, str]
"""A reported problem: severity, path, message, fix."""


def container(**more: Any) -> dict[str, Any]:
    return {"name": "tensorflow", "image": "example/a:1", **more}


def replica(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"template": {"spec": {"containers": list(containers) or [container()]}}, **more}


def tfjob(roles: Any = None, name: str = "mnist", **spec: Any) -> dict[str, Any]:
    roles = {"Worker": replica()} if roles is None else roles
    body = {**({} if roles == "absent" else {"tfReplicaSpecs": roles}), **spec}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name}, "spec": body}


def old(*replicas: dict[str, Any], **spec: Any) -> dict[str, Any]:
    body = {"replicaSpecs": list(replicas), **spec}
    return {
        "apiVersion": "tensorflow.org/v1alpha1",
        "kind": "TfJob",
        "metadata": {"name": "mnist"},
        "spec": body,
    }


def pod(volumes: list[Any], mounts: list[Any]) -> dict[str, Any]:
    """A TFJob with these volumes."""
    spec = {"containers": [container(volumeMounts=mounts)], "volumes": volumes}
    return tfjob({"Worker": {"template": {"spec": spec}}})


def jobfile(**words: Any) -> dict[str, Any]:
    return {"name": "mnist", "image": "example/a:1", **words}


def reported(data: Any) -> list[Found]:
    return [row(problem) for problem in formats.check(data).problems]


def row(problem: Problem) -> Found:
    return (problem.severity, format_path(problem.path), problem.message, problem.fix)


LONG = "x" * 56
ROLES = "one of: Chief, Master, Worker, PS, Evaluator"
WORKER = "spec.tfReplicaSpecs[Worker]"
INSIDE = f"{WORKER}.template.spec.containers"
NAME = "must be lower-case letters, digits and '-', begin with a letter and not end with '-'"
VERSIONS = (
    "one of: kubeflow.org/v1, kubeflow.org/v1beta2, kubeflow.org/v1beta1, kubeflow.org/v1alpha2,"
    " kubeflow.org/v1alpha1, tensorflow.org/v1alpha1"
)
LABEL_RULE = "must be lower-case letters, digits and '-', and not start or end with '-'"
GIT_OPTION = "must not begin with '-': git would read it as an option"
UNKNOWN = "unknown field in Kubernetes 1.36"
PORT = {"name": "tfjob-port", "containerPort": 2222}

CASES: dict[str, tuple[Any, str, str, str]] = {
    # Checks of upstream's webhook, with its paths.
    "a name with capitals": (tfjob(name="MNist"), "metadata.name", NAME, 'for example "mnist"'),
    "a name that begins with a digit": (tfjob(name="1a"), "metadata.name", NAME, 'for example "a"'),
    "a name that ends with a dash": (tfjob(name="a-"), "metadata.name", NAME, 'for example "a"'),
    "a name of dots": (tfjob(name="a.b_c"), "metadata.name", NAME, 'for example "a-b-c"'),
    "a manager that nobody knows": (
        tfjob(runPolicy={"managedBy": "kueue"}),
        "spec.runPolicy.managedBy",
        "must be one of kubeflow.org/training-operator, kueue.x-k8s.io/multikueue",
        "",
    ),
    "an empty manager": (
        tfjob(runPolicy={"managedBy": ""}),
        "spec.runPolicy.managedBy",
        "must be one of kubeflow.org/training-operator, kueue.x-k8s.io/multikueue",
        "",
    ),
    "no replica specs": (
        tfjob("absent"), "spec.tfReplicaSpecs", "must be given", "add at least one role, such as Worker",
    ),
    "empty replica specs": (
        tfjob({}), "spec.tfReplicaSpecs", "must be given", "add at least one role, such as Worker",
    ),
    "a role without containers": (
        tfjob({"Worker": {"template": {"spec": {"containers": []}}}}),
        INSIDE, "must be specified", "add a container named tensorflow, with its image",
    ),
    "a role without a template": (
        tfjob({"Worker": {"replicas": 1}}),
        INSIDE, "must be specified", "add a container named tensorflow, with its image",
    ),
    "a container without an image": (
        tfjob({"Worker": replica({"name": "tensorflow"})}),
        f"{INSIDE}[0].image", "must be required", "add the image to run",
    ),
    "a container with an empty image": (
        tfjob({"Worker": replica(container(), container(name="side", image=""))}),
        f"{INSIDE}[1].image", "must be required", "add the image to run",
    ),
    "no container named tensorflow": (
        tfjob({"Worker": replica(container(name="train"))}),
        f"{INSIDE}[0].name", "must have at least one container with name tensorflow",
        "name the training container tensorflow: it gets TF_CONFIG",
    ),
    "a chief and a master": (
        tfjob({"Chief": replica(), "Master": replica()}),
        "spec.tfReplicaSpecs", "must not have more than 1 Chief or Master role", "keep one of the two",
    ),
    # Checks that upstream's webhook does not have.
    "an unknown replica type": (
        tfjob({"Worker": replica(), "Foo": replica()}),
        "spec.tfReplicaSpecs[Foo]", "unknown replica type 'Foo'", ROLES,
    ),
    "a misspelt replica type": (
        tfjob({"Wroker": replica()}),
        "spec.tfReplicaSpecs[Wroker]", "unknown replica type 'Wroker'", "did you mean Worker?",
    ),
    "the same role in two letter cases": (
        tfjob({"Worker": replica(), "WORKER": replica()}),
        "spec.tfReplicaSpecs[WORKER]", "the role Worker is given twice", "keep one of the two",
    ),
    "a misspelt field of the spec": (
        tfjob(runPolcy={}), "spec.runPolcy", "unknown field 'runPolcy'", "did you mean runPolicy?",
    ),
    "a misspelt field of a role": (
        tfjob({"Worker": replica(replica=3)}),
        f"{WORKER}.replica", "unknown field 'replica'", "did you mean replicas?",
    ),
    "a misspelt field of the run policy": (
        tfjob(runPolicy={"backofLimit": 3}),
        "spec.runPolicy.backofLimit", "unknown field 'backofLimit'", "did you mean backoffLimit?",
    ),
    "a misspelt field of the object": (
        {**tfjob(), "sepc": {}}, "sepc", "unknown field 'sepc'", "did you mean spec?",
    ),
    "no spec": (
        {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "a"}},
        "spec", "must be given", "add spec.tfReplicaSpecs",
    ),
    "no metadata": (
        {key: part for key, part in tfjob().items() if key != "metadata"},
        "metadata", "must be given", "metadata: {name: my-job}",
    ),
    "no name": ({**tfjob(), "metadata": {}}, "metadata.name", "must be given", "give the job a name"),
    "a name that is a number": (
        {**tfjob(), "metadata": {"name": 7}},
        "metadata.name", "must be text, not 7", "quote it",
    ),
    "metadata that is a list": (
        {**tfjob(), "metadata": []},
        "metadata", "must be a mapping, not a list", "",
    ),
    "a label that is a number": (
        {**tfjob(), "metadata": {"name": "a", "labels": {"version": 7}}},
        "metadata.labels.version", "must be text, not 7", "quote it",
    ),
    "a prefix that makes no name": (
        {**tfjob(), "metadata": {"generateName": "A_"}}, "metadata.generateName", NAME,
        'for example "a-00000"',
    ),
    "a version that never was": (
        {**tfjob(), "apiVersion": "example.org/v7"}, "apiVersion", "must be a version of TFJob", VERSIONS,
    ),
    "a misspelt version": (
        {**tfjob(), "apiVersion": "kubeflow.org/v1beta3"},
        "apiVersion", "must be a version of TFJob", "did you mean kubeflow.org/v1beta2?",
    ),
    "a kind in wrong letters": ({**tfjob(), "kind": "tfjob"}, "kind", "must be TFJob", "did you mean TFJob?"),
    "a kind that is missing": (
        {key: part for key, part in tfjob().items() if key != "kind"}, "kind", "must be TFJob", "one of: TFJob",
    ),
    "a restart policy in wrong letters": (
        tfjob({"Worker": replica(restartPolicy="onfailure")}),
        f"{WORKER}.restartPolicy", "must be one of Always, OnFailure, Never, ExitCode",
        'did you mean "OnFailure"?',
    ),
    "a clean-up policy that nobody knows": (
        tfjob(runPolicy={"cleanPodPolicy": "Everything"}),
        "spec.runPolicy.cleanPodPolicy", "must be one of All, Running, None", "",
    ),
    "a success policy that nobody knows": (
        tfjob(successPolicy="AllWorker"),
        "spec.successPolicy", "must be one of AllWorkers", 'did you mean "AllWorkers"?',
    ),
    "negative replicas": (
        tfjob({"Worker": replica(replicas=-1)}),
        f"{WORKER}.replicas", "must be a number from 0 to 100000", "",
    ),
    "absurd replicas": (
        tfjob({"Worker": replica(replicas=10**9)}),
        f"{WORKER}.replicas", "must be a number from 0 to 100000", "",
    ),
    "replicas in quotes": (
        tfjob({"Worker": replica(replicas="2")}),
        f"{WORKER}.replicas", "must be a whole number", "remove the quotes",
    ),
    "replicas that are half": (
        tfjob({"Worker": replica(replicas=1.5)}), f"{WORKER}.replicas", "must be a whole number", "",
    ),
    "replicas that are true": (
        tfjob({"Worker": replica(replicas=True)}), f"{WORKER}.replicas", "must be a whole number", "",
    ),
    "a deadline of nothing": (
        tfjob(runPolicy={"activeDeadlineSeconds": 0}),
        "spec.runPolicy.activeDeadlineSeconds", "must be a number of at least 1", "",
    ),
    "a negative time to live": (
        tfjob(runPolicy={"ttlSecondsAfterFinished": -5}),
        "spec.runPolicy.ttlSecondsAfterFinished", "must be a number from 0 to 2147483647", "",
    ),
    "a negative backoff limit": (
        tfjob(runPolicy={"backoffLimit": -1}),
        "spec.runPolicy.backoffLimit", "must be a number from 0 to 100000", "",
    ),
    "two run policies that disagree": (
        tfjob(backoffLimit=1, runPolicy={"backoffLimit": 2}),
        "spec.runPolicy.backoffLimit", "must not differ from spec.backoffLimit: both set the same policy",
        "keep one of the two",
    ),
    "more than one chief": (
        tfjob({"Chief": replica(replicas=2), "Worker": replica()}),
        "spec.tfReplicaSpecs[Chief].replicas", "must be at most 1: a job has one Chief", "set it to 1",
    ),
    "a gang that never fits": (
        tfjob(runPolicy={"schedulingPolicy": {"minAvailable": 3}}),
        "spec.runPolicy.schedulingPolicy.minAvailable",
        "must be at most 1, the number of tasks: a larger gang never starts",
        "use at most 1",
    ),
    "a name that is too long once suffixed": (
        tfjob(name=LONG), "metadata.name",
        f"is too long: the name '{LONG}-worker-0' would have 65 characters, at most 63 are allowed",
        "use at most 54 characters",
    ),
    "a name that many workers make too long": (
        tfjob({"Worker": replica(replicas=101)}, name="x" * 53), "metadata.name",
        f"is too long: the name '{'x' * 53}-worker-100' would have 64 characters, at most 63 are allowed",
        "use at most 52 characters",
    ),
    "a TF_CONFIG over 128 KiB": (
        tfjob({"Worker": replica(replicas=3000)}),
        f"{WORKER}.replicas", "TF_CONFIG would have 174,256 bytes; Linux allows at most 131,072",
        "use at most 2,255 Worker tasks, or shorter names",
    ),
    "a TF_CONFIG over 128 KiB of the chief of elastic workers": (
        tfjob({"Worker": replica(replicas=3000), "Chief": replica()}, enableDynamicWorker=True),
        f"{WORKER}.replicas", "TF_CONFIG would have 174,310 bytes; Linux allows at most 131,072",
        "use at most 2,254 Worker tasks, or shorter names",
    ),
    "two ports of one number": (
        tfjob({"Worker": replica(container(ports=[PORT, {"containerPort": 2222}]))}),
        f"{INSIDE}[0].ports[1]", "must be unique: the port is given twice", "keep one of the two",
    ),
    "two ports of one name": (
        tfjob({"Worker": replica(container(ports=[PORT, {**PORT, "containerPort": 1}]))}),
        f"{INSIDE}[0].ports[1]", "must be unique: the port is given twice", "keep one of the two",
    ),
    "a port beyond all ports": (
        tfjob({"Worker": replica(container(ports=[{"containerPort": 70000}]))}),
        f"{INSIDE}[0].ports[0].containerPort", "must be a port number, 1 to 65535", "",
    ),
    "a port that is text": (
        tfjob({"Worker": replica(container(ports=[{**PORT, "containerPort": "http"}]))}),
        f"{INSIDE}[0].ports[0].containerPort", 'must be a whole number, not "http"',
        "write it without quotes",
    ),
    "two containers of one name": (
        tfjob({"Worker": replica(container(), container())}),
        f"{INSIDE}[1].name", "must be unique: another container has this name", "rename one of the two",
    ),
    "a container without a name": (
        tfjob({"Worker": replica(container(), {"image": "a"})}),
        f"{INSIDE}[1].name", "must be given", "it identifies the items of this list",
    ),
    "a container that is null": (
        tfjob({"Worker": replica(None)}),  # type: ignore[arg-type]
        f"{INSIDE}[0]", "must not be null", "remove the item, or fill it in",
    ),
    "a GPU that is only requested": (
        tfjob({"Worker": replica(container(resources={"requests": {"nvidia.com/gpu": 1}}))}),
        f"{INSIDE}[0].resources.requests[nvidia.com/gpu]",
        "must also be a limit: Kubernetes rejects a GPU request without a limit", "move it to resources.limits",
    ),
    "a dialect that nobody speaks": (
        {**tfjob(), "metadata": {"name": "a", "annotations": {"tfyard.dev/dialect": "tf3"}}},
        "metadata.annotations[tfyard.dev/dialect]", "must be one of tf2, kubeflow, tf1",
        'did you mean "tf2"?',
    ),
    "together that is neither true nor false": (
        {**tfjob(), "metadata": {"name": "a", "annotations": {"tfyard.dev/together": "yes"}}},
        "metadata.annotations[tfyard.dev/together]", "must be one of true, false", "",
    ),
    "an MLflow server with a password": (
        {**tfjob(), "metadata": {"name": "a", "annotations": {"tfyard.dev/mlflow": "https://me:hunter2@h"}}},
        "metadata.annotations[tfyard.dev/mlflow]", "must have no credentials",
        "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN,"
        " where tfyard is called",
    ),
    "an MLflow server that is a file": (
        {**tfjob(), "metadata": {"name": "a", "annotations": {"tfyard.dev/mlflow": "sqlite:///runs.db"}}},
        "metadata.annotations[tfyard.dev/mlflow]", "must be the address of an MLflow server",
        "as in http://127.0.0.1:5000, where `mlflow server` listens",
    ),
    "workers that come and go together": (
        {
            **tfjob(enableDynamicWorker=True),
            "metadata": {"name": "a", "annotations": {"tfyard.dev/together": "true"}},
        },
        "metadata.annotations[tfyard.dev/together]",
        "must not be set with dynamic workers, which come and go without the others", "remove one of the two",
    ),
    "a grace that is no time": (
        {**tfjob(), "metadata": {"name": "a", "annotations": {"tfyard.dev/evaluator-grace": "soon"}}},
        "metadata.annotations[tfyard.dev/evaluator-grace]", "must be a duration",
        'for example 90s, 5m, 1h30m or "2d"',
    ),
    "a stall that is no time": (
        {**tfjob(), "metadata": {"name": "a", "annotations": {"tfyard.dev/stall": "soon"}}},
        "metadata.annotations[tfyard.dev/stall]", "must be a duration", 'for example 90s, 5m, 1h30m or "2d"',
    ),
    "a stall that nobody could wait for": (
        {**tfjob(), "metadata": {"name": "a", "annotations": {"tfyard.dev/stall": "0"}}},
        "metadata.annotations[tfyard.dev/stall]", "must be at least 1 second",
        "remove it, and hanging programs are not detected",
    ),
    "a stall with another end": (
        {**tfjob(), "metadata": {"name": "a", "annotations": {"tfyard.dev/stall": "15m, then fail"}}},
        "metadata.annotations[tfyard.dev/stall]", "must be a duration, and may say what happens then",
        'for example "15m", or "15m, then restart"',
    ),
    # v1alpha1
    "a master of no replicas": (
        old(replica(replicas=0), replica(tfReplicaType="WORKER")),
        "spec.replicaSpecs[0].replicas", "must be 1: a job has exactly one MASTER", "replicas: 1",
    ),
    "an old job without roles": (old(), "spec.replicaSpecs", "must be given", "add at least one role"),
    "an old job without a spec": (
        {key: part for key, part in old().items() if key != "spec"},
        "spec", "must be given", "add spec.replicaSpecs",
    ),
    "an old role in small letters": (
        old(replica(tfReplicaType="worker")),
        "spec.replicaSpecs[0].tfReplicaType", "must be one of MASTER, WORKER, PS",
        'did you mean "WORKER"?',
    ),
    "two masters in one spec": (
        old(replica(replicas=2)), "spec.replicaSpecs[0].replicas",
        "must be at most 1: a job has one Master", "set it to 1",
    ),
    "a worker without a template": (
        old(replica(), {"tfReplicaType": "WORKER"}),
        "spec.replicaSpecs[1].template", "must be given", "add a pod template: only a PS may omit it",
    ),
    "a type that is given twice": (
        old(replica(), replica()),
        "spec.replicaSpecs[1].tfReplicaType", "MASTER is given twice", "merge the two",
    ),
    "a chief that is not there": (
        old(replica(), terminationPolicy={"chief": {"replicaName": "WORKER", "replicaIndex": 0}}),
        "spec.terminationPolicy.chief.replicaName", "Missing ReplicaSpec for chief",
        "name a type that replicaSpecs has",
    ),
    "a chief beyond the last": (
        old(
            replica(tfReplicaType="WORKER"),
            terminationPolicy={"chief": {"replicaName": "WORKER", "replicaIndex": 5}},
        ),
        "spec.terminationPolicy.chief.replicaIndex", "must be less than 1, the replicas of Worker", "",
    ),
    "a board without logs": (
        old(replica(), tensorboard={}), "spec.tensorboard.logDir", "must be given",
        "Directory of the summaries, as the containers see it.",
    ),
    # The job file
    "a file without a name": (
        {"image": "a"}, "name", "must be given", "give the job a name, such as mnist",
    ),
    "a file whose name is a number": (jobfile(name=7), "name", "must be text", "quote it"),
    "a file whose name is no host name": (jobfile(name="My Job"), "name", NAME, 'for example "my-job"'),
    "a file without an image": (
        {"name": "mnist"}, "image", "must be given", "image: tensorflow/tensorflow:2.21.0",
    ),
    "an image that is a number": (jobfile(image=5), "image", "must be text", "quote it"),
    "an image of a role that is a number": (
        {"name": "mnist", "worker": {"image": 5}}, "worker.image", "must be text", "quote it",
    ),
    "a misspelt word": (
        jobfile(wroker=2), "wroker", "unknown field 'wroker'", "did you mean worker?",
    ),
    "a misspelt word in a role": (
        jobfile(worker={"cont": 2}), "worker.cont", "unknown field 'cont'", "did you mean count?",
    ),
    "a role that is text": (
        jobfile(worker="two"), "worker", "must be a whole number or a mapping", "",
    ),
    "a negative role": (jobfile(worker=-1), "worker", "must be a number from 0 to 100000", ""),
    "a role that is true": (jobfile(worker=True), "worker", "must be a whole number or a mapping", ""),
    "two chiefs": (
        jobfile(chief=2, worker=1), "chief.count", "must be at most 1: a job has one Chief", "set it to 1",
    ),
    "a chief beside a master": (
        jobfile(chief=1, master=1), "", "must not have more than 1 Chief or Master role",
        "keep one of the two",
    ),
    "a restart word of TFJob": (
        jobfile(restart="OnFailure"), "restart", "must be one of never, on-failure, always, exit-code",
        'did you mean "on-failure"?',
    ),
    "a volume without a source": (
        jobfile(volumes={"data": {"at": "/data"}}), "volumes.data", "volume data has no source",
        "give exactly one of nfs, claim, azureFile, hostPath, emptyDir, configMap, secret",
    ),
    "a volume with two sources": (
        jobfile(volumes={"data": {"at": "/data", "nfs": "a:/b", "hostPath": "/c"}}), "volumes.data",
        "volume data has 2 sources (nfs, hostPath)",
        "give exactly one of nfs, claim, azureFile, hostPath, emptyDir, configMap, secret",
    ),
    "a volume at no path": (
        jobfile(volumes={"data": {"emptyDir": {}}}), "volumes.data.at", "must be given",
        "Mount path in the container; must be absolute.",
    ),
    "a volume at a relative path": (
        jobfile(worker={"volumes": {"data": {"at": "data", "emptyDir": {}}}}),
        "worker.volumes.data.at", "must be an absolute path", 'for example "/data"',
    ),
    "a volume of TensorBoard at a relative path": (
        jobfile(tensorboard={"logs": "/l", "volumes": {"data": {"at": "data", "emptyDir": {}}}}),
        "tensorboard.volumes.data.at", "must be an absolute path", 'for example "/data"',
    ),
    "an export without a server": (
        jobfile(volumes={"data": {"at": "/data", "nfs": "/exports"}}),
        "volumes.data.nfs", "must be an NFS export", 'for example "10.0.0.5:/exports/data"',
    ),
    "a size without a claim": (
        jobfile(volumes={"data": {"at": "/data", "emptyDir": {}, "size": "1Gi"}}),
        "volumes.data.size", "must be used with a claim", "add claim: data",
    ),
    "a class without a size": (
        jobfile(volumes={"data": {"at": "/data", "claim": "a", "storageClass": "fast"}}),
        "volumes.data.size", "must be given to create the claim", "for example size: 5Gi",
    ),
    "one claim of two sizes": (
        jobfile(
            volumes={
                "a": {"at": "/a", "claim": "c", "size": "1Gi"},
                "b": {"at": "/b", "claim": "c", "size": "2Gi"},
            }
        ),
        "volumes.b.claim", "the claim c is created twice, with different settings", "give its size once",
    ),
    "a volume with a name that Kubernetes refuses": (
        jobfile(volumes={"My_Data": {"at": "/a", "emptyDir": {}}}),
        "volumes.My_Data", "must be lower-case letters, digits and '-', and not start or end with '-'",
        'for example "my-data"',
    ),
    "a secret without a key": (
        jobfile(secrets={"TOKEN": "my-secret"}), "secrets.TOKEN", "must be SECRET/KEY",
        'for example "my-secret/token"',
    ),
    "code from two places": (
        jobfile(code={"path": ".", "git": "a"}), "code", "must have one source",
        "give exactly one of from, path, git, url",
    ),
    "a claim for code that is fetched": (
        jobfile(code={"from": "https://a.example/b.git", "claim": "c"}), "code.claim",
        "must be used with a folder: other code is fetched by each task", "remove it",
    ),
    "a claim that is no name": (
        jobfile(code={"from": ".", "claim": "My Claim"}), "code.claim",
        "must be the name of a PersistentVolumeClaim", "use lower-case letters, digits, '-' and '.'",
    ),
    "requirements without code": (
        jobfile(requirements="requirements.txt"), "requirements",
        "must be used with code: it names a file of it", "add code: .",
    ),
    "requirements outside of the code": (
        jobfile(code=".", requirements="../requirements.txt"), "requirements",
        "must be a file of the code, relative to its folder", "for example requirements.txt",
    ),
    "a deadline that is no time": (
        jobfile(deadline="soon"), "deadline", "must be a duration", 'for example 90s, 5m, 1h30m or "2d"',
    ),
    "a deadline of no time": (
        jobfile(deadline="0s"), "deadline", "must be at least 1 second", "remove it for no deadline",
    ),
    "a deadline of ages": (jobfile(deadline="3600w"), "deadline", "must be at most 68 years", ""),
    "memory in the words of shops": (
        jobfile(memory="8GB"), "memory", "must be a quantity", "8G or 8Gi",
    ),
    "memory of one role in small letters": (
        jobfile(memory="1Gi", worker={"memory": "8gb"}), "worker.memory", "must be a quantity", "8G or 8Gi",
    ),
    "memory with a blank": (jobfile(memory="100 Mi"), "memory", "must be a quantity", "100Mi"),
    "memory with a blank before a small letter": (
        jobfile(memory="100 m"), "memory", "must be a quantity", "100M or 100Mi",
    ),
    "memory with a large K": (jobfile(memory="64K"), "memory", "must be a quantity", "64k or 64Ki"),
    "memory in kibibytes": (jobfile(memory="64 kib"), "memory", "must be a quantity", "64Ki"),
    "memory in bytes": (jobfile(memory="4096 bytes"), "memory", "must be a quantity", "4096"),
    "memory with a comma": (jobfile(memory="1,5Gi"), "memory", "must be a quantity", "1.5Gi"),
    "memory in words": (jobfile(memory="lots"), "memory", "must be a quantity", "for example 8Gi or 500M"),
    "memory in cores": (
        jobfile(memory="2 cores"), "memory", "must be a quantity", "for example 8Gi or 500M",
    ),
    "memory without end": (
        jobfile(memory=float("inf")), "memory", "must be a quantity", "for example 8Gi or 500M",
    ),
    "memory with more digits than one reads": (
        jobfile(memory="9" * 1000 + "GB"), "memory", "must be a quantity", "for example 8Gi or 500M",
    ),
    "less than no memory": (jobfile(memory="-1Gi"), "memory", "must not be negative", "1Gi"),
    "a tenth of a byte": (
        jobfile(memory="100m"), "memory",
        "100m is 100 thousandths of a byte; M was probably meant", "100M or 100Mi",
    ),
    "a tenth of a byte in a TFJob": (
        tfjob({"Worker": replica(container(resources={"limits": {"memory": "100m", "cpu": "100m"}}))}),
        f"{INSIDE}[0].resources.limits.memory",
        "100m is 100 thousandths of a byte; M was probably meant", "100M or 100Mi",
    ),
    "memory without a unit": (
        jobfile(memory=8), "memory", "8 is 8 bytes; a unit is probably missing", "8Gi",
    ),
    "memory of a role without a unit": (
        jobfile(worker={"memory": 512}), "worker.memory",
        "512 is 512 bytes; a unit is probably missing", "512Mi",
    ),
    "a limit of a few bytes": (
        tfjob({"Worker": replica(container(resources={"limits": {"memory": "64k"}}))}),
        f"{INSIDE}[0].resources.limits.memory", "64k is 64,000 bytes; a unit is probably missing",
        "for example 8Gi or 500M",
    ),
    # Volumes and paths
    "a mount of a volume that is not declared": (
        pod(volumes=[{"name": "data", "emptyDir": {}}], mounts=[{"name": "dta", "mountPath": "/data"}]),
        f"{INSIDE}[0].volumeMounts[0].name", "the volume dta is not declared", 'did you mean "data"?',
    ),
    "a mount in an overlay of a volume that is not declared": (
        jobfile(overlay={"spec": {"containers": [
            {"name": "tensorflow", "volumeMounts": [{"name": "x", "mountPath": "/x"}]},
        ]}}),
        "overlay.spec.containers[0].volumeMounts[0].name", "the volume x is not declared",
        "add it to the volumes, or remove this mount",
    ),
    "a mount in an init container of a volume that is not declared": (
        tfjob({"Worker": {"template": {"spec": {
            "containers": [container()],
            "initContainers": [container(name="i", volumeMounts=[{"name": "x", "mountPath": "/x"}])],
        }}}}),
        f"{WORKER}.template.spec.initContainers[0].volumeMounts[0].name", "the volume x is not declared",
        "add it to the volumes, or remove this mount",
    ),
    "two volumes at one path": (
        jobfile(volumes={"a": {"at": "/data", "emptyDir": {}}}, worker={"volumes": {
            "b": {"at": "/data/", "emptyDir": {}},
        }}),
        "worker.volumes.b.at", "must be unique: the volume a is mounted at this path",
        "choose another path for one of the two",
    ),
    "two volumes of a TFJob at one path": (
        pod(volumes=[{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}],
            mounts=[{"name": "a", "mountPath": "/data"}, {"name": "b", "mountPath": "/data"}]),
        f"{INSIDE}[0].volumeMounts[1].mountPath", "must be unique: the volume a is mounted at this path",
        "choose another path for one of the two",
    ),
    "two volumes of TensorBoard at one path": (
        jobfile(tensorboard={"logs": "/l", "volumes": {
            "a": {"at": "/l", "emptyDir": {}}, "b": {"at": "/l", "emptyDir": {}},
        }}),
        "tensorboard.volumes.b.at", "must be unique: the volume a is mounted at this path",
        "choose another path for one of the two",
    ),
    "a volume where the code is": (
        jobfile(code="https://a.example/b.zip", volumes={"a": {"at": "/code", "emptyDir": {}}}),
        "volumes.a.at", "must be unique: the code is mounted at this path", "choose another path",
    ),
    "two volumes of one name": (
        pod(volumes=[{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}], mounts=[]),
        f"{WORKER}.template.spec.volumes[1].name", "must be unique: another volume has this name",
        "rename one of the two",
    ),
    "a volume over the whole disk": (
        jobfile(volumes={"a": {"at": "/", "emptyDir": {}}}), "volumes.a.at",
        "must not be /: it would hide the container's own files", 'for example "/data"',
    ),
    "a volume of a TFJob over the whole disk": (
        pod(volumes=[{"name": "a", "emptyDir": {}}], mounts=[{"name": "a", "mountPath": "//"}]),
        f"{INSIDE}[0].volumeMounts[0].mountPath", "must not be /: it would hide the container's own files",
        'for example "/data"',
    ),
    "code over the whole disk": (
        jobfile(code={"path": ".", "at": "/"}), "code.at",
        "must not be /: it would hide the container's own files", 'for example "/code"',
    ),
    "code at a relative path": (
        jobfile(code={"path": ".", "at": "src"}), "code.at", "must be an absolute path",
        'for example "/src"',
    ),
    "a relative working directory": (
        jobfile(workdir="src"), "workdir", "must be an absolute path", 'for example "/src"',
    ),
    "a relative working directory of a role": (
        jobfile(workdir="/a", worker={"workdir": "./src"}), "worker.workdir", "must be an absolute path",
        'for example "/src"',
    ),
    "a relative working directory of a TFJob": (
        tfjob({"Worker": replica(container(workingDir="src"))}), f"{INSIDE}[0].workingDir",
        "must be an absolute path", 'for example "/src"',
    ),
    "a directory of the node at a relative path": (
        jobfile(volumes={"a": {"at": "/a", "hostPath": "data"}}), "volumes.a.hostPath",
        "must be an absolute path", 'for example "/data"',
    ),
    "a directory of the node with a way up": (
        pod(volumes=[{"name": "a", "hostPath": {"path": "/data/../etc"}}], mounts=[]),
        f"{WORKER}.template.spec.volumes[0].hostPath.path", "must not contain '..'",
        "write the path without it",
    ),
    "a claim that is a path": (
        jobfile(volumes={"a": {"at": "/a", "claim": "../../root"}}), "volumes.a.claim",
        "must be the name of a claim: lower-case letters, digits, '-' and '.'", 'for example "root"',
    ),
    "a claim of a TFJob that is a path": (
        pod(volumes=[{"name": "a", "persistentVolumeClaim": {"claimName": "../../root"}}], mounts=[]),
        f"{WORKER}.template.spec.volumes[0].persistentVolumeClaim.claimName",
        "must be the name of a claim: lower-case letters, digits, '-' and '.'", 'for example "root"',
    ),
    "a claim of TensorBoard that is a path": (
        jobfile(tensorboard={"logs": "/l", "volumes": {"a": {"at": "/l", "claim": "/root"}}}),
        "tensorboard.volumes.a.claim",
        "must be the name of a claim: lower-case letters, digits, '-' and '.'", 'for example "root"',
    ),
    "a subPath that leaves its volume": (
        jobfile(volumes={"a": {"at": "/a", "claim": "a", "subPath": "../../etc"}}), "volumes.a.subPath",
        "must be a path inside the volume: relative, without '..'", 'for example "etc"',
    ),
    "a subPath of a TFJob that leaves its volume": (
        pod(volumes=[{"name": "a", "emptyDir": {}}],
            mounts=[{"name": "a", "mountPath": "/a", "subPath": "/etc"}]),
        f"{INSIDE}[0].volumeMounts[0].subPath",
        "must be a path inside the volume: relative, without '..'", 'for example "etc"',
    ),
    "a file of a ConfigMap that leaves its volume": (
        pod(volumes=[{"name": "a", "configMap": {"name": "b", "items": [{"key": "k", "path": "../x"}]}}],
            mounts=[]),
        f"{WORKER}.template.spec.volumes[0].configMap.items[0].path",
        "must be a path inside the volume: relative, without '..'", 'for example "x"',
    ),
    "a file of a projected volume that leaves it": (
        pod(volumes=[{"name": "a", "projected": {"sources": [
            {"secret": {"name": "b", "items": [{"key": "k", "path": "/x"}]}},
        ]}}], mounts=[]),
        f"{WORKER}.template.spec.volumes[0].projected.sources[0].secret.items[0].path",
        "must be a path inside the volume: relative, without '..'", 'for example "x"',
    ),
    "a volume of a TFJob whose name is a path": (
        pod(volumes=[{"name": "../x", "emptyDir": {}}], mounts=[]),
        f"{WORKER}.template.spec.volumes[0].name", LABEL_RULE, 'for example "x"',
    ),
    "a container whose name is a path": (
        tfjob({"Worker": replica(container(), container(name="../x"))}), f"{INSIDE}[1].name", LABEL_RULE,
        'for example "x"',
    ),
    "a subPath of an old job's TensorBoard that leaves its volume": (
        old(replica(), tensorboard={
            "logDir": "/l", "volumes": [{"name": "a", "emptyDir": {}}],
            "volumeMounts": [{"name": "a", "mountPath": "/l", "subPath": ".."}],
        }),
        "spec.tensorboard.volumeMounts[0].subPath",
        "must be a path inside the volume: relative, without '..'", "remove it",
    ),
    "a command of no words": (
        jobfile(run=""), "run", "must not be empty",
        "give the command, or remove it to run the image's entrypoint",
    ),
    "a command of a role of blanks": (
        jobfile(run="a", worker={"run": " "}), "worker.run", "must not be empty",
        "give the command, or remove it to run the image's entrypoint",
    ),
    # Code
    "an address with a blank": (
        jobfile(code="https://a.example/my code.zip"), "code", "must not contain blanks",
        "write %20 for a blank",
    ),
    "a repository with a line end": (
        jobfile(code={"git": "https://a.example/b\nc"}), "code.git", "must not contain blanks",
        "write %20 for a blank",
    ),
    "an archive on this machine's disk": (
        jobfile(code={"url": "file:///etc/passwd"}), "code.url", "must be an http(s) URL",
        'for example "https://example.com/code.zip"',
    ),
    "a repository that is an option of git": (
        jobfile(code={"git": "--upload-pack=touch /tmp/x"}), "code.git", GIT_OPTION,
        "give the URL of the repository",
    ),
    "a repository that is an option of git, as text": (
        jobfile(code="git+--upload-pack=x"), "code", GIT_OPTION, "give the URL of the repository",
    ),
    "a host that is an option of ssh": (
        jobfile(code="ssh://-oProxyCommand=x/y"), "code", GIT_OPTION, "give the URL of the repository",
    ),
    "a repository by a helper that runs commands": (
        jobfile(code={"git": "ext::sh -c id"}), "code.git", "must not use a remote helper of git",
        "use an https://, ssh://, git:// or file:// URL",
    ),
    "a ref that is an option of git": (
        jobfile(code={"git": "https://a.example/b", "ref": "--detach"}), "code.ref",
        "must be the name of a branch or a tag, or a commit", "remove the '-' at its beginning",
    ),
    "a ref of two commits": (
        jobfile(code="https://a.example/b.git#a..b"), "code",
        "must be the name of a branch or a tag, or a commit", "for example main or v1.2",
    ),
    "code from nowhere": (
        jobfile(code=""), "code", "must not be empty",
        "give a folder, a git URL, or the http(s) URL of an archive",
    ),
    "CPUs in words": (jobfile(cpu="a lot"), "cpu", "must be a quantity", "for example 2, 0.5 or 500m"),
    "CPUs with their unit": (jobfile(cpu="2 cores"), "cpu", "must be a quantity", "2"),
    "less than no CPU": (jobfile(worker={"cpu": -1}), "worker.cpu", "must not be negative", "1"),
    "a size in the words of shops": (
        jobfile(volumes={"data": {"at": "/data", "claim": "a", "size": "5GB"}}),
        "volumes.data.size", "must be a quantity", "5G or 5Gi",
    ),
    "scratch space in the words of shops": (
        jobfile(worker=1, ps=1, volumes={"tmp": {"at": "/tmp", "emptyDir": {"sizeLimit": "5GB"}}}),
        "volumes.tmp.emptyDir.sizeLimit", "must be a quantity", "5G or 5Gi",
    ),
    "scratch space of an overlay in the words of shops": (
        jobfile(overlay={"spec": {"volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "5GB"}}]}}),
        "overlay.spec.volumes[0].emptyDir.sizeLimit", "must be a quantity", "5G or 5Gi",
    ),
    "a gang that needs nonsense": (
        jobfile(gang={"resources": {"nvidia.com/gpu": "two"}}), "gang.resources[nvidia.com/gpu]",
        "must be a quantity", "for example 2, 500m or 8Gi",
    ),
    "a gang of a TFJob that needs nonsense": (
        tfjob(runPolicy={"schedulingPolicy": {"minResources": {"memory": "8GB"}}}),
        "spec.runPolicy.schedulingPolicy.minResources.memory", "must be a quantity", "8G or 8Gi",
    ),
    "a limit that is no quantity": (
        tfjob({"Worker": replica(container(resources={"limits": {"memory": "8GB"}}))}),
        f"{INSIDE}[0].resources.limits.memory", "must be a quantity", "8G or 8Gi",
    ),
    "a request that is no quantity": (
        tfjob({"Worker": replica(container(resources={"requests": {"cpu": "-1"}}))}),
        f"{INSIDE}[0].resources.requests.cpu", "must not be negative", "1",
    ),
    "a limit of an init container that is no quantity": (
        tfjob({"Worker": {"template": {"spec": {
            "containers": [container()],
            "initContainers": [{"name": "a", "image": "b", "resources": {"limits": {"memory": "1 Gi"}}}],
        }}}}),
        f"{WORKER}.template.spec.initContainers[0].resources.limits.memory", "must be a quantity", "1Gi",
    ),
    "a limit of an old job that is no quantity": (
        old(replica(container(resources={"limits": {"memory": "8GB"}}))),
        "spec.replicaSpecs[0].template.spec.containers[0].resources.limits.memory",
        "must be a quantity", "8G or 8Gi",
    ),
    "an overlay whose limit is no quantity": (
        jobfile(memory="1Gi", overlay={"spec": {"containers": [
            {"name": "tensorflow", "resources": {"limits": {"memory": "8GB"}}},
        ]}}),
        "overlay.spec.containers[0].resources.limits.memory", "must be a quantity", "8G or 8Gi",
    ),
    "a gang larger than the job": (
        jobfile(worker=2, gang={"atLeast": 3}), "gang.atLeast",
        "must be at most 2, the number of tasks: a larger gang never starts", "use at most 2",
    ),
    "an overlay with a list for a mapping": (
        jobfile(overlay={"spec": []}), "overlay.spec", "a list cannot be merged into a mapping", "",
    ),
    "an overlay with a number for text": (
        jobfile(worker=1, ps=1, overlay={"spec": {"priorityClassName": 7}}),
        "overlay.spec.priorityClassName", "must be text, not 7", "quote it",
    ),
    "an overlay of a role with a number for text": (
        jobfile(worker={"overlay": {"spec": {"priorityClassName": 7}}}, overlay={"spec": {"hostIPC": True}}),
        "worker.overlay.spec.priorityClassName", "must be text, not 7", "quote it",
    ),
    "a toleration of all roles with no text for text": (
        jobfile(worker=1, ps=1, tolerations=[{"key": "dedicated", "value": True}]),
        "tolerations[0].value", "must be text, not true", "quote it",
    ),
    "a toleration of a role with no text for text": (
        jobfile(tolerations=[{"key": "a"}], worker={"tolerations": [{"key": "b"}, {"key": 7}]}),
        "worker.tolerations[1].key", "must be text, not 7", "quote it",
    ),
    "a toleration that an overlay puts in the place of all others": (
        jobfile(tolerations=[{"key": "a"}], overlay={"spec": {"tolerations": [{"key": 7}]}}),
        "overlay.spec.tolerations[0].key", "must be text, not 7", "quote it",
    ),
    "scratch space with a number for text": (
        jobfile(
            volumes={"tmp": {"at": "/tmp", "emptyDir": {"medium": 7}}},
            overlay={"spec": {"volumes": [{"name": "more", "emptyDir": {}}]}},
        ),
        "volumes.tmp.emptyDir.medium", "must be text, not 7", "quote it",
    ),
    "scratch space of a role with a number for text": (
        jobfile(
            volumes={"tmp": {"at": "/tmp", "emptyDir": {}}},
            worker={"volumes": {"tmp": {"at": "/tmp", "emptyDir": {"medium": 7}}}},
        ),
        "worker.volumes.tmp.emptyDir.medium", "must be text, not 7", "quote it",
    ),
    "a side container of an overlay without an image": (
        jobfile(overlay={"spec": {"containers": [{"name": "side"}]}}),
        "overlay.spec.containers[0].image", "must be required", "add the image to run",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_wrong_file_is_an_error_with_its_path_and_its_fix(case: tuple[Any, str, str, str]) -> None:
    data, path, message, fix = case
    assert reported(data) == [("error", path, message, fix)]
    with pytest.raises(errors.Invalid) as caught:
        formats.load(data)
    assert [problem.message for problem in caught.value.problems] == [message]


WARNINGS: dict[str, tuple[Any, str, str, str]] = {
    "a restart policy in the pod template": (
        tfjob({"Worker": {"template": {"spec": {"containers": [container()], "restartPolicy": "OnFailure"}}}}),
        "spec.tfReplicaSpecs[Worker].template.spec.restartPolicy",
        "has no effect: the role's own restartPolicy is used, which is Never",
        "set it beside `replicas`: restartPolicy: OnFailure",
    ),
    "a restart policy in the overlay of a job file": (
        jobfile(restart="always", overlay={"spec": {"restartPolicy": "Never"}}),
        "overlay.spec.restartPolicy",
        "has no effect: the role's own restartPolicy is used, which is Always",
        "use the word `restart`",
    ),
    "a TF_CONFIG by hand": (
        tfjob({"Worker": replica(container(env=[{"name": "TF_CONFIG", "value": "{}"}]))}),
        f"{INSIDE}[0].env[0]", "TF_CONFIG is set here, so tfyard does not set it",
        "remove it: tfyard then sets it for every task",
    ),
    "a TF_CONFIG by hand in a job file": (
        jobfile(env={"TF_CONFIG": "{}"}), "env.TF_CONFIG",
        "TF_CONFIG is set here, so tfyard does not set it",
        "remove it: tfyard then sets it for every task",
    ),
    "a TF_CONFIG by hand in a role": (
        jobfile(worker={"env": {"TF_CONFIG": "{}"}}), "worker.env.TF_CONFIG",
        "TF_CONFIG is set here, so tfyard does not set it",
        "remove it: tfyard then sets it for every task",
    ),
    "a field that Kubernetes does not know": (
        tfjob({"Worker": replica(container(imagge="x"))}),
        f"{INSIDE}[0].imagge", f'{UNKNOWN}; did you mean "image"?', "",
    ),
    "a field of the metadata that Kubernetes does not know": (
        {**tfjob(), "metadata": {"name": "a", "label": {}}},
        "metadata.label", f'{UNKNOWN}; did you mean "labels"?', "",
    ),
    "a field of an overlay that Kubernetes does not know": (
        jobfile(worker=1, ps=1, overlay={"spec": {"prioClassName": "x"}}),
        "overlay.spec.prioClassName", f'{UNKNOWN}; did you mean "priorityClassName"?', "",
    ),
    "a request of a few bytes": (
        tfjob({"Worker": replica(container(resources={"requests": {"memory": 8}}))}),
        f"{INSIDE}[0].resources.requests.memory", "8 is 8 bytes; a unit is probably missing", "8Gi",
    ),
    "scratch space of a few bytes": (
        jobfile(volumes={"tmp": {"at": "/tmp", "emptyDir": {"sizeLimit": 500}}}),
        "volumes.tmp.emptyDir.sizeLimit", "500 is 500 bytes; a unit is probably missing", "500Mi",
    ),
    "Kubernetes' way to name a variable, in a shell line": (
        jobfile(run="python a.py --steps $(STEPS) $(date) $$(A)", worker={"run": "echo $(B) $C"}),
        "worker.run", "the shell takes $(B) for a program to run", "for the variable, write $B",
    ),
    "no task at all": (
        tfjob({"Worker": replica(replicas=0)}), "spec.tfReplicaSpecs",
        "the job has no tasks: nothing will run", "give a role at least 1 task",
    ),
    "parameter servers alone": (
        tfjob({"PS": replica()}), "spec.tfReplicaSpecs",
        "the job has only parameter servers: it trains nothing and never ends", "add a Worker or a Chief",
    ),
    "two evaluators": (
        tfjob({"Worker": replica(), "Evaluator": replica(replicas=2)}),
        "spec.tfReplicaSpecs[Evaluator].replicas",
        "TensorFlow uses one evaluator; further ones repeat its work", "set it to 1",
    ),
    "TF_CONFIG from a secret": (
        jobfile(secrets={"TF_CONFIG": "s/k"}), "secrets.TF_CONFIG",
        "TF_CONFIG is set here, so tfyard does not set it",
        "remove it: tfyard then sets it for every task",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WARNINGS.values(), ids=WARNINGS.keys())
def test_a_doubtful_file_is_a_warning_and_the_job_is_read(case: tuple[Any, str, str, str]) -> None:
    data, path, message, fix = case
    assert reported(data) == [("warning", path, message, fix)]
    assert formats.load(data).name


@pytest.mark.parametrize(
    "data",
    [
        tfjob({"worker": replica(), "pS": replica()}),
        tfjob(cleanPodPolicy="All", runPolicy={"cleanPodPolicy": "All"}),
        tfjob({"Worker": replica(container(), {"name": "side", "image": "b"})}),
        tfjob({"Worker": replica(container(ports=[PORT, {**PORT, "name": "udp", "protocol": "UDP"}]))}),
        tfjob({"Worker": replica(replicas=9000), "PS": replica()}, enableDynamicWorker=True),
        tfjob(name="x" * 54),
        jobfile(worker={"count": 2, "cpu": "500m", "gpu": 0}, keepFor=0),
        jobfile(volumes={"a": {"nfs": "[fd00::1]:/x", "at": "/a"}}),
        jobfile(version=1, gang=True, evaluator={"grace": "1h30m"}),
        *(
            jobfile(code=source, volumes={"a": {"at": "/a", "claim": "my.claim-1", "subPath": "b/..c"}})
            for source in (
                "git@example.com:team/program.git#feature/new",
                {"git": "ssh://git@example.com:22/a-b", "ref": "HEAD~1"},
                {"git": "/srv/my repos/a-b", "ref": "1a2b3c4"},
                "file:///srv/a.git#v1.0-rc.1",
                "https://example.com/a%20b.tar.gz?x=-1",
                "../folder with blanks",
            )
        ),
        *(
            tfjob({"Worker": replica(container(resources={"limits": {"memory": amount}}))})
            for amount in (1e21, "1Ei", " 1Gi ", "128974848000m", "2097152", "0", "-0")
        ),
        *(
            tfjob({"Worker": replica(container(resources={"limits": {"cpu": amount, "a.io/b": amount}}))})
            for amount in (
                1,
                0.5,
                1e3,
                1e21,
                "1e3",
                "1E3",
                "+1",
                "-0",
                "5.",
                ".5",
                "1Ei",
                " 1Gi ",
                "128974848000m",
            )
        ),
    ],
)
def test_a_correct_file_has_no_problem(data: Any) -> None:
    assert reported(data) == []


@pytest.mark.parametrize("data", [None, 1, "text", [], [tfjob()], True])
def test_a_document_that_is_no_mapping_is_no_job(data: Any) -> None:
    assert reported(data) == [("error", "", "must be a mapping", "write a TFJob or a tfyard job file")]
    assert not formats.is_job(data)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (tfjob(), True),
        ({"name": "a"}, True),
        ({"kind": "tfJOB", "apiVersion": "x"}, True),
        ({"apiVersion": "kubeflow.org/v1"}, True),
        ({"apiVersion": "v1", "kind": "Service"}, False),
        ({"apiVersion": "v1"}, False),
        ({"kind": "Service"}, False),
        ({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}, False),
    ],
)
def test_what_counts_as_a_job(data: Any, expected: bool) -> None:
    assert formats.is_job(data) is expected


MANY = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: Bad_Name
spec:
  runPolicy: {cleanPodPolicy: all, backofLimit: 3}
  tfReplicaSpecs:
    Chief:
      replicas: 2
      template:
        spec:
          containers:
          - name: main
            imagge: x
    Worker:
      replicas: -1
"""


def test_all_problems_of_a_file_are_reported_at_once_in_the_order_of_their_positions() -> None:
    problems = formats.check(only(MANY)).problems
    assert [(p.position.line, p.position.column, row(p)[1]) for p in problems if p.position] == [
        (4, 9, "metadata.name"),
        (6, 31, "spec.runPolicy.cleanPodPolicy"),
        (6, 36, "spec.runPolicy.backofLimit"),
        (9, 17, "spec.tfReplicaSpecs[Chief].replicas"),
        (13, 13, "spec.tfReplicaSpecs[Chief].template.spec.containers[0].image"),
        (13, 19, "spec.tfReplicaSpecs[Chief].template.spec.containers[0].name"),
        (14, 13, "spec.tfReplicaSpecs[Chief].template.spec.containers[0].imagge"),
        (15, 5, "spec.tfReplicaSpecs[Worker].template.spec.containers"),
        (16, 17, "spec.tfReplicaSpecs[Worker].replicas"),
    ]


def test_a_bad_amount_does_not_hide_what_else_is_wrong_in_its_pod() -> None:
    problems = reported(
        tfjob({"Worker": replica({"name": "main", "resources": {"limits": {"memory": "8GB"}}})})
    )
    assert [path.removeprefix(INSIDE) for _, path, _, _ in problems] == [
        "[0].resources.limits.memory",
        "[0].name",
        "[0].image",
    ]


def test_the_other_problems_of_a_job_file_without_a_name_are_reported() -> None:
    text = "wroker: 2\nps: -1\ndeadline: soon\nvolumes:\n  a: {at: x, nfs: z}\n"
    problems = formats.check(only(text)).problems
    assert sorted((p.position.line, row(p)[1]) for p in problems if p.position) == [
        (1, "image"),
        (1, "name"),
        (1, "wroker"),
        (2, "ps"),
        (3, "deadline"),
        (5, "volumes.a.at"),
        (5, "volumes.a.nfs"),
    ]


def test_an_item_that_is_no_mapping_does_not_shift_the_places_of_the_others() -> None:
    data = old(replica(), 5, replica({"name": "tensorflow"}, tfReplicaType="PS"))  # type: ignore[arg-type]
    assert [path for _, path, _, _ in reported(data)] == [
        "spec.replicaSpecs[1]",
        "spec.replicaSpecs[2].template.spec.containers[0].image",
    ]


def test_a_missing_image_is_reported_whatever_an_overlay_puts_first() -> None:
    overlay = {"spec": {"containers": [{"name": "side", "image": "a"}]}}
    assert reported({"name": "a", "overlay": overlay}) == [
        ("error", "image", "must be given", "image: tensorflow/tensorflow:2.21.0")
    ]


def test_a_wrong_image_of_one_role_does_not_hide_the_missing_image_of_another() -> None:
    problems = reported({"name": "a", "worker": {"image": 5}, "ps": 1})
    assert [path for _, path, _, _ in problems] == ["worker.image", "image"]


def test_a_problem_of_a_word_for_all_roles_is_reported_once() -> None:
    assert len(reported({"name": "a", "worker": 1, "ps": 1, "chief": 1})) == 1


def test_problems_keep_their_order_whatever_the_hash_seed() -> None:
    data = {**tfjob(), "b": 1, "a": 1, "c": 1}
    assert [path for _, path, _, _ in reported(data)] == ["b", "a", "c"]


def test_as_many_tasks_as_are_said_to_fit_do_fit() -> None:
    assert reported(tfjob({"Worker": replica(replicas=2255)})) == []
    assert reported(tfjob({"Worker": replica(replicas=2256)})) != []
    job = formats.load(tfjob({"Worker": replica(replicas=2255)}))
    (config,) = [c.manifest for c in decide(job).actions if getattr(c, "kind", "") == "ConfigMap"]  # type: ignore[union-attr]
    assert all(len(text) + 200 < 128 * 1024 for text in config["data"].values())


def test_a_hundred_thousand_unknown_words_are_not_all_compared() -> None:
    words = {f"word{n}": n for n in range(100_000)}
    for data in (jobfile(**words), tfjob({**words}), tfjob(**words), {**tfjob(), **words}):
        assert len(reported(data)) <= 2 * MAX_PROBLEMS


def test_errors_are_not_crowded_out_by_warnings() -> None:
    odd = container(**{f"field{n}": n for n in range(500)})
    checked = formats.check(tfjob({"Worker": replica(odd), "Chief": replica(odd), "Foo": replica()}))
    assert [row(problem)[1] for problem in checked.errors] == ["spec.tfReplicaSpecs[Foo]"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, derandomize=True)
@given(JSON, st.sampled_from(["spec", "metadata", "kind", "apiVersion"]))
def test_any_data_at_all_gets_an_answer(value: Any, field: str) -> None:
    assert formats.check(value).errors or formats.check(value).job is not None
    assert formats.check({**tfjob(), field: value}).errors or field in ("metadata", "spec")


def test_many_containers_mounts_and_volumes_are_each_checked_once() -> None:
    many = [container(name=f"c{n}") for n in range(20_000)]
    mounts = [{"name": f"v{n}", "mountPath": f"/v{n}"} for n in range(20_000)]
    data = tfjob({"Worker": replica(container(volumeMounts=mounts), *many)})
    data["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["volumes"] = [
        {"name": f"v{n}", "emptyDir": {}} for n in range(20_000)
    ]
    assert len(formats.dump(formats.load(data), "jobfile").document["volumes"]) == 20_000
