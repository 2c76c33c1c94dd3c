"""The image of a task cannot be pulled: which image, and why the registry does not give it."""

import re

from msgspec.structs import replace

from tfyard.overview.cause import TASKS, Cause, Quote, cut
from tfyard.overview.evidence import Evidence
from tfyard.overview.objects import Container, Pod

WAITS = {
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
}
"""The kubelet's reasons."""
NO_SECRET = "FailedToRetrieveImagePullSecret"
_NAMED = r'(?:image|reference) "([^"]+)"'
CHECK_TAG = "check the name and the tag: `image: NAME:TAG`"
NEEDS_SECRET = (
    "job file: `pullSecret: NAME`, the name of a Secret that `kubectl create secret docker-registry` makes"
)
_ANSWERS = (
    (r"toomanyrequests|rate limit|429", "the registry's rate limit is reached", NEEDS_SECRET),
    (r"couldn't parse image|InvalidImageName|invalid reference format", "the name is not valid", CHECK_TAG),
    (r"ErrImageNeverPull|not present with pull policy of Never",
     "it is not on the node, and imagePullPolicy is Never",
     "job file: `overlay: {spec: {containers: [{name: tensorflow, imagePullPolicy: IfNotPresent}]}}`"),
    (r"no match for platform|no matching manifest", "there is none for the processor of the node",
     "build it for the node's architecture, or choose nodes: `nodeSelector: {kubernetes.io/arch: amd64}`"),
    (r"pull access denied|repository does not exist or may require",
     "there is no such repository, or it is private",
     f"{CHECK_TAG}; private: {NEEDS_SECRET}"),
    (r"unauthorized|authentication required|insufficient_scope|no basic auth|denied|40[13]",
     "the registry wants a login that the pod does not have", NEEDS_SECRET),
    (r"not found|manifest unknown|name unknown|404", "the registry does not have it", CHECK_TAG),
    (r"x509|certificate", "the registry's certificate is not trusted by the node",
     "ask the cluster's administrator"),
    (r"no such host|i/o timeout|connection refused|deadline exceeded|TLS handshake|network is unreachable|EOF",
     "the registry cannot be reached from the node", "check the registry's host name, and the node's network"),
    (r"no space left", "the node's disk is full", "ask the cluster's administrator"),
)  # fmt: skip


def of_pod(evidence: Evidence, pod: Pod) -> Cause | None:
    for status in pod.statuses:
        waiting = status.state.waiting
        if waiting is not None and waiting.reason in WAITS:
            said = _longest(evidence, pod, waiting.message)
            image = next((c.image for c in _containers(pod) if c.name == status.name), status.image)
            return _with_secret(
                evidence, pod, of_message(pod.task, f"{waiting.reason}: {said.text}", image, said)
            )
    return None


def _containers(pod: Pod) -> tuple[Container, ...]:
    return (*pod.spec.init_containers, *pod.spec.containers)


def _longest(evidence: Evidence, pod: Pod, message: str) -> Quote:
    """While it backs off, older kubelets say no more than that; the event has the registry's answer."""
    events = evidence.warnings(pod, "Failed", "InspectFailed", "ErrImageNeverPull")
    best = max(events, key=lambda event: len(event.message), default=None)
    if best is not None and len(best.message) >= len(message):
        return Quote("event", cut(best.message), best.at)
    return Quote("container", cut(message), pod.changed)


def of_message(task: str, message: str, image: str, quote: Quote) -> Cause:
    named = image or (found[1] if (found := re.search(_NAMED, message)) else "its image")
    words, fix = next(
        ((words, fix) for pattern, words, fix in _ANSWERS if re.search(pattern, message)), ("", "")
    )
    sentence = f"{TASKS} cannot pull {named}" + (f": {words}" if words else "")
    return Cause(kind="image-pull", sentence=sentence, fix=fix or CHECK_TAG, tasks=(task,), evidence=(quote,))


def _with_secret(evidence: Evidence, pod: Pod, cause: Cause) -> Cause:
    """The kubelet warns of a pull Secret that does not exist, and pulls without it."""
    events = evidence.events_of("Pod", pod.name)
    warning = next((event for event in events if event.reason == NO_SECRET), None)
    if warning is None:
        return cause
    names = ", ".join(str(secret.get("name")) for secret in pod.spec.image_pull_secrets)
    quote = Quote("event", cut(warning.message), warning.at)
    return replace(
        cause,
        sentence=f"{cause.sentence}; there is no Secret {names} in namespace {evidence.namespace}",
        fix=f"kubectl -n {evidence.namespace} create secret docker-registry {names} --docker-server=REGISTRY …",
        evidence=(*cause.evidence, quote),
    )
