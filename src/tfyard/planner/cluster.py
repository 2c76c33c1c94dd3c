"""TF_CONFIG: how each task learns who the others are and who it is itself.

`cluster` is the same text for nearly everybody, so it is made once. Listing N tasks in N pods costs N² bytes;
beyond a budget the text lives once in a ConfigMap, and the kubelet expands it into each pod's TF_CONFIG.
"""

import hashlib
from collections.abc import Callable

import msgspec
from msgspec import Struct

from tfyard.model import CHIEF, EVALUATOR, MASTER, PS, WORKER, Dialect, Job, Manifest, Role, Task
from tfyard.model.names import cluster_config_name

from .job_setup import Setup, addresses

TF_CONFIG = "TF_CONFIG"
CLUSTER_VARIABLE = "TFYARD_CLUSTER"
INLINE_BUDGET = 128 * 1024

# The older contract of parameter-server scripts, for programs that mention these names.
CLASSIC_VARIABLES = ("PS_HOSTS", "WORKER_HOSTS", "JOB_NAME", "TASK_INDEX")

Hosts = dict[str, list[str]]


class Roster(Struct, frozen=True, kw_only=True):
    """Everybody's address, and how the job's TensorFlow wants to be told."""

    hosts: Hosts
    dialect: Dialect
    dynamic: bool = False
    config_map: str = ""
    """Name of the ConfigMap that holds the texts; empty: they are small enough to stand in each pod."""

    def type_of(self, role: str) -> str:
        """TF 2 refuses a cluster with a `master`; older programs insist on it."""
        return "chief" if role == MASTER and self.dialect == "tf2" else role.lower()

    def cluster_text(self, role: str) -> str:
        listed = {self.type_of(name): hosts for name, hosts in self.hosts.items() if self._lists(name, role)}
        return _compact(dict(sorted(listed.items())))

    def config_data(self) -> dict[str, str]:
        """What the ConfigMap holds: one text for all, and the evaluator's own where it differs."""
        texts = {"cluster": self.cluster_text(WORKER)}
        if EVALUATOR in self.hosts and (own := self.cluster_text(EVALUATOR)) != texts["cluster"]:
            texts["evaluator"] = own
        return texts

    def _lists(self, name: str, reader: str) -> bool:
        """An evaluator is no member of the training cluster: listed for all, ParameterServerStrategy waits
        for it forever (tensorflow#46169). Upstream lists it since 1.2; TF 1 never wanted it."""
        if name != EVALUATOR or self.dialect == "kubeflow":
            return True
        return self.dialect == "tf2" and reader == EVALUATOR

    def environment(self, role: str) -> Callable[[int], list[Manifest]]:
        """The env entries for each task of a role, by index."""
        if self.dynamic:
            return lambda index: [_value(TF_CONFIG, self._sparse(role, index))]
        kind, end = self.type_of(role), ',"environment":"cloud"}'
        if self.config_map:
            shared = [self._from_config_map(role)]
            start = f'{{"cluster":$({CLUSTER_VARIABLE}),"task":{{"type":"{kind}","index":'
        else:
            shared = []
            start = f'{{"cluster":{self.cluster_text(role)},"task":{{"type":"{kind}","index":'
        return lambda index: [*shared, {"name": TF_CONFIG, "value": f"{start}{index}}}{end}"}]

    def _from_config_map(self, role: str) -> Manifest:
        key = "evaluator" if role == EVALUATOR and "evaluator" in self.config_data() else "cluster"
        source = {"configMapKeyRef": {"name": self.config_map, "key": key}}
        return {"name": CLUSTER_VARIABLE, "valueFrom": source}

    def _sparse(self, role: str, index: int) -> str:
        """Elastic workers come and go, so nobody lists them but the chief, who schedules onto them."""
        listed: dict[str, object] = {}
        for name, hosts in self.hosts.items():
            if name == WORKER and role in (WORKER, PS):
                listed["worker"] = {str(index): hosts[index]} if role == WORKER else {}
            elif self._lists(name, role):
                listed[self.type_of(name)] = hosts
        task = {"type": self.type_of(role), "index": index}
        return _compact({"cluster": dict(sorted(listed.items())), "task": task})

    def classic(self, task: Task) -> dict[str, str]:
        return {
            "PS_HOSTS": ",".join(self.hosts.get(PS, ())),
            "WORKER_HOSTS": ",".join(self.hosts.get(WORKER, ())),
            "JOB_NAME": self.type_of(task.role),
            "TASK_INDEX": str(task.index),
        }

    def cluster_spec(self) -> str:
        """The form of TensorFlow's old stand-alone server: `ps|h:1;h:2,worker|h:3`."""
        listed = {self.type_of(name): hosts for name, hosts in self.hosts.items() if name != EVALUATOR}
        return ",".join(f"{kind}|{';'.join(hosts)}" for kind, hosts in sorted(listed.items()))


def roster(job: Job, setup: Setup) -> Roster:
    hosts = {role.name: addresses(job, role, setup) for role in job.roles if role.replicas > 0}
    found = Roster(hosts=hosts, dialect=setup.dialect, dynamic=job.dynamic_workers)
    if job.dynamic_workers or setup.ports or not _is_large(found, job.size):
        return found
    name = cluster_config_name(job.name, _digest(found.config_data()))
    return Roster(hosts=hosts, dialect=setup.dialect, config_map=name)


def has_tf_config(job: Job) -> bool:
    """A lone task gets none, as upstream: TensorFlow then trains on one machine without further ado.
    An alpha MASTER always had one, and its scripts read it."""
    return job.size > 1 or (job.dialect == "tf1" and job.role(MASTER) is not None)


def chiefs(job: Job, role: Role) -> range:
    """Which tasks of a role carry upstream's `job-role: master` label, by which tools find the logs to show:
    the task that the format names, else every chief, else worker 0."""
    if job.chief is not None:
        index = job.chief.index
        return range(index, index + 1) if role.name == job.chief.role else range(0)
    if any(other.name in (CHIEF, MASTER) and other.replicas > 0 for other in job.roles):
        return range(role.replicas if role.name in (CHIEF, MASTER) else 0)
    return range(1 if role.name == WORKER else 0)


def _is_large(found: Roster, size: int) -> bool:
    return len(found.cluster_text(WORKER)) * size > INLINE_BUDGET


def _digest(data: dict[str, str]) -> str:
    return hashlib.sha256(_compact(data).encode()).hexdigest()[:8]


def _compact(data: object) -> str:
    return msgspec.json.encode(data).decode()


def _value(name: str, value: str) -> Manifest:
    return {"name": name, "value": value}
