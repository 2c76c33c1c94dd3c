"""The pods of one namespace, and the few words that the tests of kubelets use about them."""

import json
from collections.abc import Callable
from typing import Any

from tfyard import kube
from tfyard.kube import Client, requests
from tfyard.testing import eventually


class Pods:
    def __init__(self, client: Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace

    async def create_pod(self, pod: dict[str, Any]) -> Any:
        return await self.client.send(requests.create(requests.PODS.path(self.namespace), pod))

    async def get(self, name: str) -> Any:
        return await self.client.send(requests.get(requests.PODS.path(self.namespace, name)))

    async def delete(self, name: str, grace: int | None = None) -> None:
        await self.client.send(requests.delete(requests.PODS.path(self.namespace, name), grace=grace))

    async def until(self, name: str, holds: Callable[[Any], object]) -> Any:
        async def look() -> Any:
            pod = await self.get(name)
            assert holds(pod), pod["status"]
            return pod

        return await eventually(look)

    async def until_phase(self, name: str, phase: str) -> Any:
        return await self.until(name, lambda pod: pod["status"]["phase"] == phase)

    async def versions(self, made: Any, holds: Callable[[Any], object] | None = None) -> list[Any]:
        """Every version of a pod since it was made, until one for which `holds`, else until it is deleted. Whoever
        asks again and again may miss those that last for a moment."""
        since = {"watch": "1", "resourceVersion": made["metadata"]["resourceVersion"]}
        query = {**since, **requests.selecting(fields={"metadata.name": made["metadata"]["name"]})}
        seen: list[Any] = []
        request = requests.get(requests.PODS.path(self.namespace), query)
        async with self.client.stream(request, idle=60) as chunks:
            async for line in kube.watch_lines(chunks):
                event = json.loads(line)
                seen.append(event["object"])
                if holds(seen[-1]) if holds else event["type"] == "DELETED":
                    return seen
        raise AssertionError(f"the watch ended too early: {seen[-1:]}")

    async def until_gone(self, name: str) -> None:
        async def look() -> None:
            try:
                pod = await self.get(name)
            except kube.NotFound:
                return
            raise AssertionError(f"{name} is still there: {pod['status']}")

        await eventually(look)
