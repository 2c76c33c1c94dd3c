"""The input of one decision. Policies read it and return their results; it is never changed."""

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model import Job, Observed, Status

from .census import Census, GivenUp, take_census
from .job_setup import Setup, choose_setup
from .reasons import SUSPENDED
from .site import Site


class Situation(Struct, frozen=True, kw_only=True):
    job: Job
    observed: Observed
    site: Site
    setup: Setup
    census: Census
    now: datetime

    @property
    def before(self) -> Status:
        return self.observed.status

    @property
    def is_resumed(self) -> bool:
        """Whether this is the first pass after a suspension."""
        return self.before.has(SUSPENDED) and not self.job.run_policy.suspend

    @property
    def stamp(self) -> datetime:
        return whole_seconds(self.now)

    @property
    def start(self) -> datetime:
        """When the job was started, or resumed."""
        if self.is_resumed:
            return self.stamp
        return self.before.start_time or whole_seconds(self.observed.begun or self.now)

    def give_up(self, gone: Iterable[GivenUp]) -> "Situation":
        return replace(self, census=self.census.give_up(gone))


def survey(job: Job, observed: Observed, site: Site, now: datetime) -> Situation:
    setup, census = choose_setup(job, observed, site), take_census(job, observed)
    return Situation(job=job, observed=observed, site=site, setup=setup, census=census, now=now)


def whole_seconds(now: datetime) -> datetime:
    """The time as Kubernetes stores it: a finer one would differ after it is read back."""
    return now.replace(microsecond=0)
