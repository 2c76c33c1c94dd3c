"""The spine: observe, decide, report, apply. In this order, because what is remembered first is never lost."""

import asyncio
from collections.abc import Awaitable
from datetime import datetime

from tfyard import planner
from tfyard.backends.base import JobStore, PodRunner
from tfyard.model import Decision, Job


async def reconcile(
    job: Job, store: JobStore, runner: PodRunner, site: planner.Site, now: datetime
) -> Decision:
    """One pass. Whoever calls it again after `wake_after`, or when the world changed, keeps the job going."""
    observed = await runner.observe(job)
    decision = planner.decide(job, observed, site, now)
    reporting = store.report(job, observed.status, decision)
    if decision.act_at_once:
        await _both(reporting, runner.apply(job, decision.actions))
    else:
        await reporting
        await runner.apply(job, decision.actions)
    return decision


async def _both(*parts: Awaitable[None]) -> None:
    """Until both are over, however one of them ends: what goes on behind the next pass could undo it."""
    for problem in await asyncio.gather(*parts, return_exceptions=True):
        if problem is not None:
            raise problem
