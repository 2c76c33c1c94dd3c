"""What pods use, read from the API: ConfigMaps, Secrets, Services, tokens, claims."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from tfyard.kube import Client, NotFound, Resource, requests
from tfyard.model import Manifest
from tfyard.node.pod_data import Objects, collect
from tfyard.node.volumes import LASTING, VolumeError, host_path, lasting_name

CLAIMS = requests.CLAIMS
VOLUMES = Resource("", "v1", "persistentvolumes", namespaced=False)
RENEW_AT = 0.8
"""Part of a token's lifetime after which it is renewed."""
_RESOURCES = {
    "configMapRef": requests.CONFIG_MAPS,
    "configMapKeyRef": requests.CONFIG_MAPS,
    "configMap": requests.CONFIG_MAPS,
    "secretRef": requests.SECRETS,
    "secretKeyRef": requests.SECRETS,
    "secret": requests.SECRETS,
}


class Token(Struct, frozen=True):
    text: str
    renew_at: float
    """Time of the monotonic clock."""


class ApiSources:
    """Reads from the API. `api`: where pods reach the apiserver. `shares`: the folder for network shares."""

    def __init__(self, client: Client, api: tuple[str, int], shares: Path) -> None:
        self._client, self._api, self._shares = client, api, shares
        self._tokens: dict[str, dict[tuple[str, int], Token]] = {}
        """Tokens by the uid of their pod."""

    def forget(self, uid: str) -> None:
        self._tokens.pop(uid, None)

    async def objects(self, pod: Manifest, part: Any) -> Objects:
        documents = []
        for path in sorted({*_paths(part, pod["metadata"]["namespace"])}):
            try:
                documents.append(await self._client.send(requests.get(path)))
            except NotFound:
                continue  # optional, or an error that names it where it is used
        return collect(documents)

    async def services(self, pod: Manifest) -> dict[str, str]:
        host, port = self._api
        env = service_env("kubernetes", host, [{"name": "https", "port": port}])
        if not pod["spec"].get("enableServiceLinks", True):
            return env
        path = requests.SERVICES.path(pod["metadata"]["namespace"])
        services: Any = await self._client.send(requests.get(path))
        return {**services_env(services["items"]), **env}

    async def token(self, pod: Manifest, audience: str, seconds: int) -> str:
        tokens = self._tokens.setdefault(pod["metadata"]["uid"], {})
        known = tokens.get((audience, seconds))
        if known is None or time.monotonic() > known.renew_at:
            known = tokens[audience, seconds] = await self._request_token(pod, audience, seconds)
        return known.text

    async def storage(self, pod: Manifest, volume: Manifest) -> Path | None:
        meta = pod["metadata"]
        if claim := volume.get("persistentVolumeClaim"):
            return await self._claim(meta["namespace"], str(claim["claimName"]))
        if "ephemeral" in volume:
            return await self._claim(meta["namespace"], f"{meta['name']}-{volume['name']}")
        return self._share(meta["namespace"], volume)

    def _share(self, namespace: str, volume: Manifest) -> Path | None:
        kind = next((kind for kind in LASTING if volume.get(kind)), None)
        if kind is None:
            return None
        owner = "" if kind == "nfs" else namespace  # a server has no namespaces
        return self._shares / owner / lasting_name(kind, volume[kind])

    async def _claim(self, namespace: str, name: str) -> Path:
        claim = await self._get(CLAIMS.path(namespace, name), f'persistentvolumeclaim "{name}" not found')
        bound = str(claim["spec"].get("volumeName") or "")
        if not bound or claim["status"].get("phase") != "Bound":
            raise VolumeError(f'PVC is not bound: persistentvolumeclaim "{name}"')
        volume = await self._get(VOLUMES.path(name=bound), f'persistentvolume "{bound}" not found')
        spec = volume["spec"]
        if local := spec.get("local"):
            return host_path({"path": local["path"], "type": "Directory"}, Path(local["path"]))
        path = Path(spec["hostPath"]["path"]) if "hostPath" in spec else self._share(namespace, spec)
        if path is None:
            raise VolumeError("volumes of the kind PersistentVolume are not supported by this node")
        return path

    async def _get(self, path: str, missing: str) -> Any:
        try:
            return await self._client.send(requests.get(path))
        except NotFound:
            raise VolumeError(missing) from None

    async def _request_token(self, pod: Manifest, audience: str, seconds: int) -> Token:
        """Request a token that is bound to the pod: it is invalid when the pod is gone."""
        meta = pod["metadata"]
        account = str(pod["spec"].get("serviceAccountName") or "default")
        bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        spec = {
            "audiences": [audience] if audience else [],
            "expirationSeconds": seconds,
            "boundObjectRef": bound,
        }
        path = requests.SERVICE_ACCOUNTS.path(meta["namespace"], account, "token")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        try:
            answer = await self._client.send(requests.create(path, body))
        except NotFound:
            missing = f'failed to fetch token: serviceaccounts "{account}" not found'
            raise VolumeError(missing) from None
        return Token(str(answer["status"]["token"]), time.monotonic() + RENEW_AT * seconds)


def _paths(part: Any, namespace: str) -> Iterator[str]:
    if isinstance(part, list):
        for each in part:
            yield from _paths(each, namespace)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key in _RESOURCES and isinstance(value, dict):
                yield _RESOURCES[key].path(namespace, str(value.get("name") or value.get("secretName") or ""))
            yield from _paths(value, namespace)


# Services, as every container of their namespace has them in its environment.


def services_env(services: Iterable[Manifest]) -> dict[str, str]:
    env: dict[str, str] = {}
    for service in services:
        address = service["spec"].get("clusterIP") or "None"
        ports = service["spec"].get("ports") or []
        if address != "None" and ports:
            env |= service_env(service["metadata"]["name"], address, ports)
    return env


def service_env(name: str, address: str, ports: list[Manifest]) -> dict[str, str]:
    """Variables of a Service: its address and ports, also in the forms of Docker's links."""
    prefix, first = _upper(name), ports[0]
    env = {f"{prefix}_SERVICE_HOST": address, f"{prefix}_SERVICE_PORT": str(first["port"])}
    env |= {f"{prefix}_SERVICE_PORT_{_upper(p['name'])}": str(p["port"]) for p in ports if p.get("name")}
    env[f"{prefix}_PORT"] = f"{_protocol(first)}://{address}:{first['port']}"
    for port in ports:
        link = f"{prefix}_PORT_{port['port']}_{_protocol(port).upper()}"
        env[link] = f"{_protocol(port)}://{address}:{port['port']}"
        env |= {f"{link}_PROTO": _protocol(port), f"{link}_PORT": str(port["port"]), f"{link}_ADDR": address}
    return env


def _protocol(port: Manifest) -> str:
    return str(port.get("protocol") or "TCP").lower()


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")
