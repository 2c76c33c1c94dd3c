"""A notebook server beside a job: the same volumes, and the addresses of the job's tasks."""

from msgspec.structs import replace

from tfyard.model import EVALUATOR, Job, Manifest, tensorflow_container
from tfyard.model.names import DEFAULT_PORT
from tfyard.planner.tf_config import TF_CONFIG, Roster, compact, tf_config

from .naming import name_for
from .notebook import Server

Hosts = dict[str, list[str]]


def variables(job: Job, hosts: Hosts, server: str) -> tuple[list[Manifest], tuple[int, ...]]:
    """CLUSTER_CONFIG always; TF_CONFIG as the chief where the job has none, and then the port of it."""
    roster = Roster(hosts={role: hosts[role] for role in hosts if role != EVALUATOR}, dialect=job.dialect)
    cluster = {roster.type_of(role): listed for role, listed in roster.hosts.items()}
    env: list[Manifest] = [{"name": "CLUSTER_CONFIG", "value": compact(cluster)}]
    if not cluster or "chief" in cluster or "master" in cluster:
        return env, ()
    own = f"{server}.{job.namespace}.svc:{DEFAULT_PORT}"
    config = tf_config(compact({"chief": [own], **cluster}), "chief", 0, environment=False)
    return [*env, {"name": TF_CONFIG, "value": config}], (DEFAULT_PORT,)


def volumes(job: Job) -> tuple[list[Manifest], list[Manifest]]:
    """What the tasks mount, each once, however many roles mount it; what two roles call by one name, by two."""
    found: dict[str, Manifest] = {}
    mounts: dict[str, Manifest] = {}
    for role in job.roles:
        mounted = tensorflow_container(role.template).get("volumeMounts") or []
        known = {volume["name"]: volume for volume in role.template["spec"].get("volumes") or []}
        for mount in mounted:
            if mount["name"] in known and mount["mountPath"] not in mounts:
                source = {key: value for key, value in known[mount["name"]].items() if key != "name"}
                name = name_for(source, mount["name"], found)
                found[name] = source
                mounts[mount["mountPath"]] = {**mount, "name": name}
    return [{"name": name, **source} for name, source in found.items()], list(mounts.values())


def server(job: Job, hosts: Hosts, base: Server) -> Server:
    env, ports = variables(job, hosts, base.name)
    shared, mounts = volumes(job)
    board = base.summaries or (job.tensorboard.log_dir if job.tensorboard else "")
    return replace(
        base, env=tuple(env), volumes=tuple(shared), mounts=tuple(mounts), ports=ports, summaries=board
    )
