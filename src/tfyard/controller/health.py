"""The HTTP server for /healthz, /readyz and /metrics, for the kubelet and Prometheus, and the check of the
operator's permissions, without which it is not ready."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Self

from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from tfyard import kube
from tfyard.errors import Usage
from tfyard.kube.access_reviews import is_allowed, review
from tfyard.kube.bind import Bind
from tfyard.model.permission import Permission

from .metrics import CONTENT_TYPE

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Reasons = Callable[[], Sequence[str]]
"""Function that returns the reasons for a negative answer; empty if all is well."""
PARALLEL_REVIEWS = 16
CHECK_AGAIN, CHECK_GRANTED = 5.0, 45.0
"""Seconds until permissions are checked again: while some are missing, because an administrator may grant them,
and while all are granted, because they may be revoked."""


class Questions(Struct, frozen=True, kw_only=True):
    """Functions that answer requests. They are called for each one, because a cached answer may be out of date."""

    metrics: Callable[[], str]
    why_not_ready: Reasons = list
    why_not_healthy: Reasons = list


class HealthServer:
    """An HTTP server until the end of the block `async with HealthServer(bind, questions) as server`."""

    def __init__(self, bind: Bind, questions: Questions) -> None:
        self._bind, self._questions = bind, questions
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", _answering(questions.why_not_healthy))
        app.router.add_get("/readyz", _answering(questions.why_not_ready))
        # A scrape in progress may finish; a keep-alive connection must not delay the release of the lease.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._bind.host or None, self._bind.port).start()
        except OSError as problem:
            await self._runner.cleanup()
            where = f"{self._bind.host}:{self._bind.port}"
            raise Usage(f"cannot listen on {where}: {problem.strerror or problem}") from problem
        log.info("serving /metrics, /healthz and /readyz on port %d", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def port(self) -> int:
        """The port that is listened on; if 0 was asked for, the one that the system chose."""
        return int(self._runner.addresses[0][1])

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self._questions.metrics().encode(), headers={"Content-Type": CONTENT_TYPE})


def _answering(why_not: Reasons) -> Handler:
    """A handler that answers 503, which a probe counts as a failure, with the reasons as text."""

    async def answer(_: web.Request) -> web.Response:
        reasons = why_not()
        text = "".join(f"{reason}\n" for reason in reasons)
        return web.Response(text=text or "ok\n", status=503 if reasons else 200)

    return answer


class PermissionCheck:
    """Checks repeatedly which of the operator's permissions are `missing`.

    Without this, a missing permission shows late: a watch that never begins, a job that never starts. The server
    itself is asked, so every kind of authorization is understood."""

    def __init__(
        self, client: kube.Client, needed: Iterable[Permission], on_count: Callable[[int], None]
    ) -> None:
        self._client, self._needed, self._on_count = client, list(needed), on_count
        self._slots = asyncio.Semaphore(PARALLEL_REVIEWS)
        self._problem = ""
        self.missing: list[str] = []
        self.has_answer = False
        """Whether `missing` is known, or the server refuses to tell."""

    async def run(self) -> None:
        while True:
            try:
                self._log_changes(await self._check())
            except kube.NotFound as absence:  # a cluster without this API: the watches will report it
                self._note(absence)
                return
            except kube.KubeError as problem:
                self._note(problem)
            else:
                self._problem = ""
                if not self.missing:
                    await asyncio.sleep(CHECK_GRANTED)
                    continue
            await asyncio.sleep(CHECK_AGAIN)

    def _note(self, problem: kube.KubeError) -> None:
        """Log once why permissions cannot be checked. A refusal makes the operator no less ready: a server that
        restarts rejects all credentials."""
        if self._problem != str(problem):
            log.info("cannot check permissions: %s", problem)
        self._problem = str(problem)
        self.has_answer = self.has_answer or isinstance(problem, kube.Refused)

    def _log_changes(self, missing: list[str]) -> None:
        """Log missing permissions once, and again when they change: they may be missing for days."""
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
