"""Asks the server which of the operator's permissions are missing, before they are needed.

Without this, a missing permission shows late: a watch that never begins, a job that never starts. The server
itself answers, so every kind of authorization is understood.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from tfyard import kube
from tfyard.install.permissions import Permission
from tfyard.kube.access_reviews import is_allowed, review

log = logging.getLogger(__name__)

PARALLEL_REVIEWS = 16
CHECK_AGAIN = 5.0
"""Seconds until missing permissions are checked again: somebody may be granting them just now."""


class PermissionCheck:
    """`missing` says which permissions the server does not grant; checked again until none is missing."""

    def __init__(
        self, client: kube.Client, needed: Iterable[Permission], on_count: Callable[[int], None]
    ) -> None:
        self._client, self._needed, self._on_count = client, list(needed), on_count
        self._slots = asyncio.Semaphore(PARALLEL_REVIEWS)
        self.missing: list[str] = []
        self.has_answer = False
        """Or will never have one."""

    async def run(self) -> None:
        while True:
            try:
                self._log_changes(await self._check())
            except kube.Refused as refusal:  # a cluster without this API: the watches will report it
                log.info("cannot check permissions: %s", refusal)
                self.has_answer = True
                return
            except kube.KubeError as problem:
                log.info("cannot check permissions: %s (retrying)", problem)
            else:
                if not self.missing:
                    return
            await asyncio.sleep(CHECK_AGAIN)

    def _log_changes(self, missing: list[str]) -> None:
        """Once, and again if it has changed: permissions may be missing for days."""
        before, self.missing, self.has_answer = self.missing, missing, True
        self._on_count(len(missing))
        if missing and missing != before:
            log.warning("missing permissions: %s", "; ".join(missing))
        elif before and not missing:
            log.info("all permissions are granted")

    async def _check(self) -> list[str]:
        denied = await asyncio.gather(*(self._denied(permission) for permission in self._needed))
        return [str(permission) for permission in denied if permission.verbs]

    async def _denied(self, permission: Permission) -> Permission:
        """The same permission with only the verbs that are denied."""
        allowed = await asyncio.gather(*(self._is_allowed(permission, verb) for verb in permission.verbs))
        denied = (verb for verb, ok in zip(permission.verbs, allowed, strict=True) if not ok)
        return replace(permission, verbs=tuple(denied))

    async def _is_allowed(self, permission: Permission, verb: str) -> bool:
        async with self._slots:
            return is_allowed(await self._client.send(review(permission, verb)))
