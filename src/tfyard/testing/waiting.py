"""Waiting for what Kubernetes does later, with a timeout."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tfyard.kube import KubeError

T = TypeVar("T")


async def eventually(look: Callable[[], Awaitable[T]], timeout: float = 30.0) -> T:
    """Call `look` until it neither fails an assertion nor is refused, and return its result; its last error is
    raised after the timeout. The apiserver's caches (RBAC, quotas, watches) lag behind by up to a second."""
    end = time.monotonic() + timeout
    while True:
        try:
            return await look()
        except (AssertionError, KubeError):
            if time.monotonic() > end:
                raise
        await asyncio.sleep(0.02)
