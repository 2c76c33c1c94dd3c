"""What the operator noted in the job about a pod that waits, for when the pod and its events cannot be read."""

from collections.abc import Iterator

from tfyard.overview.cause import TASKS, Cause, Quote, S, cut
from tfyard.overview.causes import images, scheduling, start, volumes
from tfyard.overview.evidence import Evidence
from tfyard.overview.objects import Pod

_KINDS = {"CrashLoop": "crash-loop", "Start": "command", "SchedulingGated": "queue"}


def find(evidence: Evidence) -> Iterator[Cause]:
    waiting = evidence.status.condition("Waiting")
    if waiting is None or waiting.status != "True":
        return
    task, _, message = waiting.message.partition(": ")
    quote = Quote("condition", cut(waiting.message), waiting.last_transition_time)
    pod = next((pod for pod in evidence.tasks if pod.task == task), Pod())
    match waiting.reason:
        case "ImagePull":
            cause = images.of_message(task, message, "", quote)
        case "Unschedulable":
            cause = scheduling.of_message(evidence, pod, message, quote)
        case "VolumeClaim":
            cause = volumes.of_claim(evidence, pod, message, quote)
        case "Mount":
            cause = volumes.of_message(evidence, pod, message, quote)
        case "Config":
            cause = start.of_config(evidence.namespace, task, message, quote)
        case reason:
            kind = _KINDS.get(reason, "waiting")
            cause = Cause(
                kind=kind, sentence=f"{TASKS} wait{S} ({reason}): {cut(message)}", evidence=(quote,)
            )
    yield Cause(
        kind=cause.kind, sentence=cause.sentence, fix=cause.fix, tasks=(task,), evidence=cause.evidence
    )
