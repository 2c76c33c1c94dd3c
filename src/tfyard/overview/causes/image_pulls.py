"""Causes of images that cannot be pulled: in the registry, the connection to it, or the node.

The patterns match messages of containerd, CRI-O and the kubelet, which have the reason last.
"""

import re

from msgspec import Struct
from msgspec.structs import replace

from tfyard.overview.cause import TASKS, Cause, Quote, cut
from tfyard.overview.evidence import Evidence
from tfyard.views.pods import ContainerStateWaiting, ContainerStatusDetails, PodDetails

NO_SECRET = "FailedToRetrieveImagePullSecret"
CHECK_TAG = "check the name and the tag: `image: NAME:TAG`"
NEEDS_SECRET = (
    "job file: `pullSecret: NAME`, the name of a Secret that `kubectl create secret docker-registry` makes"
)
ADMINISTRATOR = "ask the cluster's administrator"
_IMAGE = r'(?:image|reference) "([^"]+)"'
_NAMES = r'"[^"]*"|https?://\S+'
"""Names of images and addresses, which may contain any word and number."""


class Pull(Struct, frozen=True):
    pattern: str
    words: str
    fix: str
    is_registrys: bool = False
    """Whether the registry itself refused the image, so that a missing pull Secret may be the reason."""
    with_secret: str = ""
    """The words if the pod has a pull Secret; {} is its name."""


_ANSWERS = (
    Pull(r"couldn't parse image|InvalidImageName|invalid reference format", "the name is not valid", CHECK_TAG),
    Pull(r"short-name .*did not resolve|short name mode", "the name has no registry",
           "name it in full: `image: docker.io/NAME:TAG`"),
    Pull(r"ErrImageNeverPull|not present with pull policy of Never",
           "it is not on the node, and imagePullPolicy is Never",
           "job file: `overlay: {spec: {containers: [{name: tensorflow, imagePullPolicy: IfNotPresent}]}}`"),
    Pull(r"no match for platform|no matching manifest|no image found in .* for architecture",
           "there is none for the processor of the node",
           "build it for the node's architecture, or choose nodes: `nodeSelector: {kubernetes.io/arch: amd64}`"),
    Pull(r"SignatureValidationFailed", "the node does not accept its signature",
           f"{ADMINISTRATOR} which signatures are accepted"),
    Pull(r"no space left", "the node's disk is full", ADMINISTRATOR),
    Pull(r"gave HTTP response to HTTPS client", "the registry speaks HTTP, and the node HTTPS",
           f"use a registry with TLS, or {ADMINISTRATOR}: containerd speaks HTTP to a registry whose"
           " /etc/containerd/certs.d/HOST/hosts.toml says `server = \"http://HOST\"`, on every node"),
    Pull(r"certificate has expired", "the registry's certificate has expired",
           "ask the registry's administrator to renew it; the node's clock may also be wrong"),
    Pull(r"x509: .*not valid for|x509: certificate is valid for|doesn't contain any IP SANs",
           "the registry's certificate is for another host",
           "use the host that the certificate names: `image: HOST/NAME:TAG`"),
    Pull(r"x509|certificate", "the registry's certificate is not trusted by the node",
           f"{ADMINISTRATOR}: containerd trusts a CA that /etc/containerd/certs.d/HOST/hosts.toml names, on every"
           " node"),
    Pull(r"dial tcp|no such host|no route to host|i/o timeout|connection (refused|reset)|deadline ?exceeded"
           r"|handshake timeout|network is unreachable|\bEOF\b|RegistryUnavailable",
           "the registry cannot be reached from the node",
           f"check the host of the registry: `image: HOST/NAME:TAG`; if it is right, {ADMINISTRATOR} about the"
           " DNS, the network or the proxy of the node"),
    Pull(r"toomanyrequests|rate limit|429 Too Many", "the registry's rate limit is reached", NEEDS_SECRET, True,
           "the registry's rate limit is reached for the login in Secret {}"),
    Pull(r"\b5\d\d (Internal|Bad Gateway|Service|Gateway)", "the registry answers with an error",
           "the kubelet tries again; if it stays so, ask the registry's administrator"),
    Pull(r"pull access denied|repository does not exist or may require",
           "there is no such repository, or it is private", f"{CHECK_TAG}; private: {NEEDS_SECRET}", True,
           "there is no such repository, or the login in Secret {} may not pull it"),
    Pull(r"unauthorized|authentication required|insufficient_scope|no basic auth|denied|403 Forbidden",
           "the registry wants a login that the pod does not have", NEEDS_SECRET, True,
           "the registry refuses the login in Secret {}"),
    Pull(r"not found|manifest unknown|name unknown|404 Not", "the registry does not have it", CHECK_TAG, True),
)  # fmt: skip
_UNKNOWN = Pull("", "", CHECK_TAG, is_registrys=True)
"""The answer for messages without a reason: older kubelets only report that they wait."""


def of_container(
    evidence: Evidence,
    pod: PodDetails,
    status: ContainerStatusDetails,
    waiting: ContainerStateWaiting,
    image: str,
) -> Cause:
    message, quote = _longest(evidence, pod, waiting.message)
    named, message = image or status.image, f"{waiting.reason}: {message}"
    answer = _answer(message, named)
    secrets = ", ".join(str(secret.get("name")) for secret in pod.spec.image_pull_secrets)
    if not secrets or not answer.is_registrys:
        return _cause(pod.task, named, answer, quote)
    events = evidence.events_of("Pod", pod.name, pod.metadata.uid)
    warning = next((event for event in events if event.reason == NO_SECRET), None)
    if warning is None:
        return _cause(pod.task, named, _with_secret(answer, evidence.namespace, secrets), quote)
    proof = Quote("event", cut(warning.message), warning.at)
    return _cause(pod.task, named, _without_secret(answer, evidence.namespace, secrets), quote, proof)


def of_message(task: str, message: str, image: str, quote: Quote) -> Cause:
    named = image or (match[1] if (match := re.search(_IMAGE, message)) else "its image")
    return _cause(task, named, _answer(message, named), quote)


def _cause(task: str, image: str, answer: Pull, *quotes: Quote) -> Cause:
    sentence = f"{TASKS} cannot pull {image}" + (f": {answer.words}" if answer.words else "")
    return Cause(kind="image-pull", sentence=sentence, fix=answer.fix, tasks=(task,), evidence=quotes)


def _with_secret(answer: Pull, namespace: str, name: str) -> Pull:
    if not answer.with_secret:
        return answer
    fix = f"{_creation(namespace, name)} --dry-run=client -o yaml | kubectl apply -f -"
    return replace(answer, words=answer.with_secret.format(name), fix=fix)


def _without_secret(answer: Pull, namespace: str, name: str) -> Pull:
    """The answer if the pull Secret does not exist: the kubelet warns, and pulls without it."""
    absent = f"there is no Secret {name} in namespace {namespace}"
    words = f"{answer.words}; {absent}" if answer.words else absent
    return replace(answer, words=words, fix=_creation(namespace, name))


def _creation(namespace: str, name: str) -> str:
    return f"kubectl -n {namespace} create secret docker-registry {name} --docker-server=REGISTRY …"


def _answer(message: str, image: str) -> Pull:
    text = re.sub(_NAMES, "", message.replace(image, "") if image else message)
    matching = (each for each in _ANSWERS if re.search(each.pattern, text, re.IGNORECASE))
    return next(matching, _UNKNOWN)


def _longest(evidence: Evidence, pod: PodDetails, message: str) -> tuple[str, Quote]:
    """The longest message about a pull: while older kubelets back off, only events have the registry's answer."""
    events = evidence.warnings(pod, "Failed", "InspectFailed", "ErrImageNeverPull")
    best = max(events, key=lambda event: len(event.message), default=None)
    if best is not None and len(best.message) >= len(message):
        return best.message, Quote("event", cut(best.message), best.at)
    return message, Quote("container", cut(message), pod.changed)
