"""The attempts at a trial: a trial that was cut off, or is tried again, runs as a TFJob of another name."""

from tfyard.kube import Forbidden
from tfyard.kube.sync import SyncClient
from tfyard.model.names import SWEEP, TRIAL
from tfyard.model.sweep import trial_name
from tfyard.remote.reading import jobs
from tfyard.remote.reading.jobs import Scope, StoredTFJob


def of_trial(client: SyncClient, job: StoredTFJob) -> list[StoredTFJob]:
    """The attempts at the trial that the job has the name of, the newest last; else the job alone."""
    sweep, number = (job.labels.get(label, "") for label in (SWEEP, TRIAL))
    if not (number.isdecimal() and job.name == trial_name(sweep, int(number))):
        return [job]
    try:
        attempts = jobs.manifests(client, Scope(job.namespace, f"{SWEEP}={sweep},{TRIAL}={number}"))
    except Forbidden:  # who may only get jobs by their names is shown the one of this name
        return [job]
    later = [each for each in attempts if each.owners == job.owners and each.name != job.name]
    return [job, *sorted(later, key=lambda each: (len(each.name), each.name))]
