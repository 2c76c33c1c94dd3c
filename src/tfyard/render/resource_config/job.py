"""A tensorflow-cluster as a Job that runs without Kubernetes: the same pods, with addresses of this machine."""

from collections.abc import Mapping

from tfyard.formats.tfjob.fields import canonical
from tfyard.model import TENSORFLOW_CONTAINER, Job, Manifest, Role, Task
from tfyard.render.notebook import Hosts

from .fields import ClusterProperties, JobFields
from .load import jobs_of
from .objects import pod


def job(part: ClusterProperties, name: str) -> Job:
    """TensorFlow 1's dialect, because it keeps a job called `master`."""
    roles = tuple(_role(part, fields) for fields in jobs_of(part))
    return Job(name=name, namespace=part.namespace, roles=roles, dialect="tf1")


def hosts(part: ClusterProperties, ports: Mapping[Task, int]) -> Hosts:
    return {
        fields.name: [f"127.0.0.1:{ports[Task(_role_name(fields.name), i)]}" for i in range(fields.num_tasks)]
        for fields in jobs_of(part)
    }


def _role_name(name: str) -> str:
    """The jobs of a config may be called anything."""
    return canonical(name) or name


def _role(part: ClusterProperties, fields: JobFields) -> Role:
    """Servers never end by themselves; as in a StatefulSet, one that ends is started again."""
    return Role(
        name=_role_name(fields.name),
        replicas=fields.num_tasks,
        restart="Always",
        port=fields.port,
        template={"spec": _spec(part, fields)},
    )


def _spec(part: ClusterProperties, fields: JobFields) -> Manifest:
    """In a StatefulSet the pod's name is the task's; here the name of the job is before it."""
    spec = pod(part, fields)
    (container,) = spec["containers"]
    own = {"name": "POD_NAME", "value": f"{fields.name}-$(TASK_INDEX)"}
    env = [own if entry["name"] == own["name"] else entry for entry in container["env"]]
    return {**spec, "containers": [{**container, "name": TENSORFLOW_CONTAINER, "env": env}]}
