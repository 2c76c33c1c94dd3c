"""The spine: observe, decide, report, apply. The order matters: a status that is stored first is never lost."""

from datetime import datetime
from typing import NamedTuple

from tfyard import planner
from tfyard.backends.base import JobStore, PodRunner
from tfyard.model import Decision, Job, Outcome


class Pass(NamedTuple):
    decision: Decision
    outcome: Outcome


async def reconcile(job: Job, store: JobStore, runner: PodRunner, site: planner.Site, now: datetime) -> Pass:
    """Run one pass; the next is due after `decision.wake_after`, after a change, or if `outcome` asks for it."""
    observed = await runner.observe(job)
    decision = planner.decide(job, observed, site, now)
    await store.report(job, observed.status, decision)
    return Pass(decision, await runner.apply(job, decision.actions))
