"""A Jupyter server that uses a cluster. Only the hash of its password is written, into a Secret."""

import base64
import hashlib
import json
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tfyard import extras
from tfyard.model import DEFAULT_PORT, EVALUATOR, Job, Manifest, names, tensorflow_container
from tfyard.model.names import TENSORBOARD_IMAGE, TENSORBOARD_PORT
from tfyard.planner.tensorboard import command
from tfyard.planner.tf_config import TF_CONFIG, Roster, tf_config

from . import podspec, scripts
from .objects import RenderedObject

DEFAULT_IMAGE = f"{names.DEFAULT_IMAGE}-jupyter"
PORT = 8888
CONFIG_FILE = "jupyter_server_config.json"
CLUSTER_CONFIG = "CLUSTER_CONFIG"
"""Variable with the addresses of all tasks, for notebooks and for scripts/server.py."""
_CONFIG_AT = "/etc/tfyard-jupyter"
_SCRIPTS_AT = "/tfyard"

Hosts = dict[str, list[str]]


class Server(Struct, frozen=True, kw_only=True):
    name: str = "jupyter"
    namespace: str = "default"
    image: str = DEFAULT_IMAGE
    service_type: str = "ClusterIP"
    hashed: str = ""
    password_secret: str = ""
    """Name of an existing Secret with the password under the key `password`; it replaces the hash."""
    env: tuple[Manifest, ...] = ()
    volumes: tuple[Manifest, ...] = ()
    mounts: tuple[Manifest, ...] = ()
    resources: Manifest = {}
    summaries: str = ""
    """Directory that TensorBoard shows; empty: no TensorBoard."""
    ports: tuple[int, ...] = ()
    """Further ports, such as that of a TensorFlow server in the notebook."""


def import_argon2() -> Any:
    """The package of the extra `notebook`. If it is missing, the error says how to install it."""
    with extras.needs("notebook", "Jupyter's password"):
        from argon2 import low_level
    return low_level


def hash_password(password: str, namespace: str, name: str) -> str:
    """Hashes a password as Jupyter does (argon2id). The salt is derived from the input, so that the same input
    gives the same output, but different servers or passwords never share a salt."""
    low_level = import_argon2()
    salt = hashlib.sha256(f"tfyard jupyter\0{namespace}\0{name}\0{password}".encode()).digest()[:16]
    hashed = low_level.hash_secret(
        password.encode(),
        salt,
        time_cost=10,
        memory_cost=10_240,
        parallelism=8,
        hash_len=32,
        type=low_level.Type.ID,
    )
    return f"argon2:{hashed.decode()}"


def config_text(hashed: str) -> str:
    """Jupyter's config, which contains only the hash of the password."""
    return json.dumps({"PasswordIdentityProvider": {"hashed_password": hashed}})


def cluster_config(hosts: Hosts) -> str:
    return json.dumps(hosts, separators=(",", ":"))


def cluster_of(job: Job, hosts: Hosts) -> Hosts:
    """The hosts by TensorFlow's task types, without the evaluator, which is not part of its cluster."""
    roster = Roster(hosts={role: hosts[role] for role in hosts if role != EVALUATOR}, dialect=job.dialect)
    return {roster.type_of(role): listed for role, listed in roster.hosts.items()}


def for_job(server: Server, job: Job, hosts: Hosts) -> Server:
    """The server with the job's volumes and the addresses of its tasks."""
    env, ports = _cluster_variables(job, hosts, server.name)
    volumes, mounts = _volumes(job)
    board = server.summaries or (job.tensorboard.log_dir if job.tensorboard else "")
    return replace(
        server, env=tuple(env), volumes=tuple(volumes), mounts=tuple(mounts), ports=ports, summaries=board
    )


def _cluster_variables(job: Job, hosts: Hosts, server: str) -> tuple[list[Manifest], tuple[int, ...]]:
    """CLUSTER_CONFIG; for a job without a chief also a TF_CONFIG as the chief, and the chief's port."""
    cluster = cluster_of(job, hosts)
    env: list[Manifest] = [{"name": CLUSTER_CONFIG, "value": cluster_config(cluster)}]
    if not cluster or "chief" in cluster or "master" in cluster:
        return env, ()
    own = f"{server}.{job.namespace}.svc:{DEFAULT_PORT}"
    config = tf_config(cluster_config({"chief": [own], **cluster}), "chief", 0, environment=False)
    return [*env, {"name": TF_CONFIG, "value": config}], (DEFAULT_PORT,)


def _volumes(job: Job) -> tuple[list[Manifest], list[Manifest]]:
    """Volumes and mounts of the tasks, each once. Different volumes of the same name get different names."""
    volumes: dict[str, Manifest] = {}
    mounts: dict[str, Manifest] = {}
    for role in job.roles:
        mounted = tensorflow_container(role.template).get("volumeMounts") or []
        known = {volume["name"]: volume for volume in role.template["spec"].get("volumes") or []}
        for mount in mounted:
            if mount["name"] in known and mount["mountPath"] not in mounts:
                source = {key: value for key, value in known[mount["name"]].items() if key != "name"}
                name = podspec.free_name(mount["name"], source, volumes)
                volumes[name] = source
                mounts[mount["mountPath"]] = {**mount, "name": name}
    return [{"name": name, **source} for name, source in volumes.items()], list(mounts.values())


def render(server: Server) -> list[RenderedObject]:
    secret = [] if server.password_secret else [_secret(server)]
    return [*secret, _script(server), _service(server), _deployment(server)]


def how_to_reach(server_name: str, namespace: str, service_type: str) -> list[str]:
    """Instructions for opening the server, by type of Service."""
    service = f"kubectl --namespace {namespace} get service {server_name}"
    forward = f"kubectl --namespace {namespace} port-forward service/{server_name} 8888:8888"
    here = f"On any cluster: {forward}, then http://localhost:8888"
    if service_type == "LoadBalancer":
        return [f"Jupyter's address is the EXTERNAL-IP of: {service} (assigning it may take minutes)", here]
    if service_type == "NodePort":
        return [f"Jupyter's port on every node is the second number in PORT(S) of: {service}", here]
    return [here]


def _labels(server: Server) -> dict[str, str]:
    return {"tensorflow": "jupyter", "app.kubernetes.io/instance": server.name}


def _metadata(server: Server, name: str) -> Manifest:
    return {"name": name, "namespace": server.namespace, "labels": _labels(server)}


def _secret(server: Server) -> RenderedObject:
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(server, f"{server.name}-password"),
        "type": "Opaque",
        "data": {CONFIG_FILE: base64.b64encode(config_text(server.hashed).encode()).decode()},
    }
    return RenderedObject(
        manifest, "Jupyter's config with the hash of the password; the password itself is not written."
    )


def _script(server: Server) -> RenderedObject:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(server, f"{server.name}-start"),
        "data": {"jupyter.sh": scripts.read("jupyter.sh")},
    }
    return RenderedObject(manifest, "The script that starts Jupyter.")


def _service(server: Server) -> RenderedObject:
    ports = [{"name": "jupyter", "port": PORT}]
    ports += [{"name": "tensorboard", "port": TENSORBOARD_PORT}] if server.summaries else []
    ports += [{"name": f"tf-{port}", "port": port} for port in server.ports]
    spec = {"type": server.service_type, "selector": _labels(server), "ports": ports}
    manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(server, server.name),
        "spec": spec,
    }
    return RenderedObject(
        manifest, " ".join(how_to_reach(server.name, server.namespace, server.service_type))
    )


def _deployment(server: Server) -> RenderedObject:
    labels = _labels(server)
    spec = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": _pod(server)},
    }
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(server, server.name),
        "spec": spec,
    }
    return RenderedObject(
        manifest, "The notebook server. Notebooks that are not on a volume are lost with the pod."
    )


def _pod(server: Server) -> Manifest:
    """Service links are off: a Service named jupyter would set JUPYTER_PORT, which Jupyter takes for a number."""
    containers = [_jupyter(server)]
    volumes = [*server.volumes, {"name": "tfyard-start", "configMap": {"name": f"{server.name}-start"}}]
    if not server.password_secret:
        volumes.append({"name": "tfyard-password", "secret": {"secretName": f"{server.name}-password"}})
    if _needs_directory(server, "/notebooks"):
        volumes.append({"name": "tfyard-notebooks", "emptyDir": {}})
    if server.summaries:
        containers.append(_board(server))
        if _needs_directory(server, server.summaries):
            volumes.append({"name": "tfyard-summaries", "emptyDir": {}})
    return {"enableServiceLinks": False, "containers": containers, "volumes": volumes}


def _needs_directory(server: Server, path: str) -> bool:
    """Whether no volume is mounted at the path or above: an empty directory would hide its contents."""
    directory = PurePosixPath(path)
    return not any(directory.is_relative_to(mount["mountPath"]) for mount in server.mounts)


def _jupyter(server: Server) -> Manifest:
    env: list[Manifest] = [{"name": "NOTEBOOKS", "value": "/notebooks"}]
    mounts = [*_common_mounts(server), {"name": "tfyard-start", "mountPath": _SCRIPTS_AT, "readOnly": True}]
    if _needs_directory(server, "/notebooks"):
        mounts.append({"name": "tfyard-notebooks", "mountPath": "/notebooks"})
    if server.password_secret:
        source = {"secretKeyRef": {"name": server.password_secret, "key": "password"}}
        env.append({"name": "PASSWORD", "valueFrom": source})
    else:
        env.append({"name": "JUPYTER_CONFIG_PATH", "value": _CONFIG_AT})
        mounts.append({"name": "tfyard-password", "mountPath": _CONFIG_AT, "readOnly": True})
    ports = [{"name": "jupyter", "containerPort": PORT}]
    ports += [{"name": f"tf-{port}", "containerPort": port} for port in server.ports]
    return {
        "name": "jupyter-server",
        "image": server.image,
        "command": ["/bin/sh", f"{_SCRIPTS_AT}/jupyter.sh"],
        "ports": ports,
        "env": [*env, *server.env],
        **({"resources": server.resources} if server.resources else {}),
        "volumeMounts": mounts,
        "readinessProbe": {"tcpSocket": {"port": PORT}},
    }


def _board(server: Server) -> Manifest:
    """TensorBoard runs in the server's image, which the cluster can pull, but the default image has none."""
    return {
        "name": "tensorboard",
        "image": TENSORBOARD_IMAGE if server.image == DEFAULT_IMAGE else server.image,
        "command": command(server.summaries),
        "ports": [{"name": "tensorboard", "containerPort": TENSORBOARD_PORT}],
        "volumeMounts": _common_mounts(server),
    }


def _common_mounts(server: Server) -> list[Manifest]:
    own = bool(server.summaries) and _needs_directory(server, server.summaries)
    extra = [{"name": "tfyard-summaries", "mountPath": server.summaries}] if own else []
    return [*server.mounts, *extra]
