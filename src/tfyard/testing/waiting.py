"""Waiting for what Kubernetes does in its own time, with an end."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tfyard.kube import KubeError

T = TypeVar("T")


async def eventually(look: Callable[[], Awaitable[T]], timeout: float = 30.0) -> T:
    """What `look` returns once it neither asserts nor is refused: caches of RBAC, quotas and watches in the
    apiserver follow the stored truth by milliseconds, or by a second. Its last objection is raised."""
    end = time.monotonic() + timeout
    while True:
        try:
            return await look()
        except (AssertionError, KubeError):
            if time.monotonic() > end:
                raise
        await asyncio.sleep(0.02)
