"""The spine: observe, decide, report, apply. In this order, because what is remembered first is never lost."""

from datetime import datetime

from tfyard import planner
from tfyard.backends.base import Halt, JobStore, PodRunner
from tfyard.model import Decision, Job


async def reconcile(
    job: Job, store: JobStore, runner: PodRunner, site: planner.Site, now: datetime
) -> Decision:
    """One pass. Whoever calls it again after `wake_after`, or when the world changed, keeps the job going."""
    observed = await runner.observe(job)
    decision = planner.decide(job, observed, site, now)
    await store.report(job, observed.status, decision)
    try:
        await runner.apply(job, decision.actions)
    except Halt as halt:
        halt.wake_after = decision.wake_after
        raise
    return decision
