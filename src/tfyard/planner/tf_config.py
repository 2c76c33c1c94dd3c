"""TF_CONFIG and the classic host lists, by which each task learns the addresses of all tasks and its own index.

The operator's pods, rendered manifests and notebooks all use this module. Only the index differs: a number,
`$(TASK_INDEX)` for the kubelet to expand, or a variable of a shell script.

`cluster` is the same text for nearly every task, so it is built once. Listing N tasks in N pods costs N² bytes;
beyond a budget the text is in one ConfigMap, and the kubelet expands it into each pod's TF_CONFIG.
"""

import hashlib
from collections.abc import Callable

import msgspec
from msgspec import Struct

from tfyard.model import EVALUATOR, MASTER, PS, WORKER, Dialect, Job, Manifest, Task
from tfyard.model.names import CLUSTER_VARIABLE, cluster_config_name

from .job_setup import Setup, addresses

TF_CONFIG = "TF_CONFIG"
INLINE_BUDGET = 128 * 1024

# The older contract of parameter-server scripts, for programs that mention these names.
CLASSIC_VARIABLES = ("PS_HOSTS", "WORKER_HOSTS", "JOB_NAME", "TASK_INDEX")

Hosts = dict[str, list[str]]
Index = int | str
"""A number, or a placeholder that is replaced by a number when the task starts."""


def tf_config(cluster: str, kind: str, index: Index, *, environment: bool = True) -> str:
    """The text of TF_CONFIG. Without `environment`, TensorFlow 1's `Experiment` starts no server."""
    end = ',"environment":"cloud"' if environment else ""
    return f'{{"cluster":{cluster},"task":{{"type":"{kind}","index":{index}}}{end}}}'


class Roster(Struct, frozen=True, kw_only=True):
    """The address of every task, and the form in which the job's TensorFlow expects them."""

    hosts: Hosts
    dialect: Dialect
    dynamic: bool = False
    config_map: str = ""
    """Name of the ConfigMap that holds the texts; empty: they are small enough to be in each pod."""

    def type_of(self, role: str) -> str:
        """The role's name in TF_CONFIG: TF 2 refuses a cluster with a `master`, older programs require it."""
        return "chief" if role == MASTER and self.dialect == "tf2" else role.lower()

    def cluster_text(self, role: str) -> str:
        listed = {self.type_of(name): hosts for name, hosts in self.hosts.items() if self._lists(name, role)}
        return _compact(dict(sorted(listed.items())))

    def config_data(self) -> dict[str, str]:
        """Data of the ConfigMap: one text for all tasks, and the evaluator's own if it differs."""
        texts = {"cluster": self.cluster_text(WORKER)}
        if EVALUATOR in self.hosts and (own := self.cluster_text(EVALUATOR)) != texts["cluster"]:
            texts["evaluator"] = own
        return texts

    def _lists(self, name: str, reader: str) -> bool:
        """Whether the TF_CONFIG of `reader` lists a role. An evaluator is no member of the training cluster: if
        all tasks list it, ParameterServerStrategy waits for it forever (tensorflow#46169). Upstream lists it since
        1.2; TF 1 never lists it."""
        if name != EVALUATOR or self.dialect == "kubeflow":
            return True
        return self.dialect == "tf2" and reader == EVALUATOR

    def environment(self, role: str) -> Callable[[Index], list[Manifest]]:
        """The env entries for each task of a role, by index."""
        if self.dynamic:
            return lambda index: [_value(TF_CONFIG, self._sparse(role, int(index)))]
        kind = self.type_of(role)
        shared = [self.cluster_entry(role)] if self.config_map else []
        cluster = f"$({CLUSTER_VARIABLE})" if self.config_map else self.cluster_text(role)
        return lambda index: [*shared, _value(TF_CONFIG, tf_config(cluster, kind, index))]

    def cluster_entry(self, role: str, variable: str = CLUSTER_VARIABLE) -> Manifest:
        """The env entry that reads a role's cluster text from the ConfigMap."""
        key = "evaluator" if role == EVALUATOR and "evaluator" in self.config_data() else "cluster"
        return {"name": variable, "valueFrom": {"configMapKeyRef": {"name": self.config_map, "key": key}}}

    def _sparse(self, role: str, index: int) -> str:
        """TF_CONFIG of a job with elastic workers. They come and go, so only the chief lists them: it schedules
        onto them. Upstream's parameter servers list only themselves."""
        if role == PS and self.dialect == "kubeflow":
            own = _compact({"worker": {}, "ps": [self.hosts[PS][index]]})
            return tf_config(own, self.type_of(role), index, environment=False)
        listed: dict[str, object] = {}
        for name, hosts in self.hosts.items():
            if name == WORKER and role in (WORKER, PS):
                listed["worker"] = {str(index): hosts[index]} if role == WORKER else {}
            elif self._lists(name, role):
                listed[self.type_of(name)] = hosts
        cluster = _compact(dict(sorted(listed.items())))
        return tf_config(cluster, self.type_of(role), index, environment=False)  # as upstream

    def host_lists(self) -> dict[str, str]:
        return {
            "PS_HOSTS": ",".join(self.hosts.get(PS, ())),
            "WORKER_HOSTS": ",".join(self.hosts.get(WORKER, ())),
        }

    def classic(self, task: Task) -> dict[str, str]:
        return {**self.host_lists(), "JOB_NAME": self.type_of(task.role), "TASK_INDEX": str(task.index)}

    def cluster_spec(self) -> str:
        """The cluster in the syntax of TensorFlow's old stand-alone server: `ps|h:1;h:2,worker|h:3`."""
        listed = {self.type_of(name): hosts for name, hosts in self.hosts.items() if name != EVALUATOR}
        return ",".join(f"{kind}|{';'.join(hosts)}" for kind, hosts in sorted(listed.items()))


def roster(job: Job, setup: Setup) -> Roster:
    hosts = {role.name: addresses(job, role, setup) for role in job.roles if role.replicas > 0}
    inline = Roster(hosts=hosts, dialect=setup.dialect, dynamic=job.dynamic_workers)
    if job.dynamic_workers or setup.ports or not _is_large(inline, job.size):
        return inline
    name = cluster_config_name(job.name, _digest(inline.config_data()))
    return Roster(hosts=hosts, dialect=setup.dialect, config_map=name)


def has_tf_config(job: Job) -> bool:
    """Whether the job's tasks get a TF_CONFIG. A job of one task has none, as upstream: TensorFlow then trains on
    one machine. A v1alpha1 MASTER always has one, because its scripts read it."""
    return job.size > 1 or (job.dialect == "tf1" and job.role(MASTER) is not None)


def _compact(data: object) -> str:
    return msgspec.json.encode(data).decode()


def _is_large(roster: Roster, size: int) -> bool:
    return len(roster.cluster_text(WORKER)) * size > INLINE_BUDGET


def _digest(data: dict[str, str]) -> str:
    return hashlib.sha256(_compact(data).encode()).hexdigest()[:8]


def _value(name: str, value: str) -> Manifest:
    return {"name": name, "value": value}
