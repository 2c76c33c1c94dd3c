"""A container cannot be started: its image cannot be pulled, its command is wrong, or it lacks a ConfigMap, a
Secret or a key."""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from tfyard.overview.cause import TASKS, Cause, Quote, cut
from tfyard.overview.evidence import End, Evidence
from tfyard.overview.objects import Container, ContainerStatus, Pod, Waiting

IMAGE_WAITS = {
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
_IMAGE = r'(?:image|reference) "([^"]+)"'
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
CONFIG_WAITS = {"CreateContainerConfigError", "CreateContainerError", "CreatePodSandboxError"}
COMMAND_WAITS = {"RunContainerError", "StartError", "PostStartHookError"}
COMMAND_ENDS = {"StartError", "ContainerCannotRun", "RunContainerError"}
_MISSING = r'(?i)\b(configmap|secret) "([^"]+)" not found'
_KEY = r"couldn't find key (\S+) in (ConfigMap|Secret) [\w.-]+/([\w.-]+)"
_VOLUME_KEY = r"references non-existent (?:config|secret) key: (\S+)"
_PROGRAM = r'exec: "(?P<name>[^"]+)"|exec (?P<path>/\S+?):|stat (?P<file>/\S+?):'
_SHELL = r"(?:^|\n)(?:[\w/.-]+: )*(?:line \d+: |\d+: )?(?P<name>[^\s:]+): (?:command )?not found"
NOT_EXECUTABLE, NOT_FOUND = 126, 127


def of_pod(evidence: Evidence, pod: Pod) -> Cause | None:
    for status in pod.statuses:
        waiting = status.state.waiting
        if waiting is None:
            continue
        if waiting.reason in IMAGE_WAITS:
            return _of_image(evidence, pod, status, waiting)
        quote = Quote("container", cut(waiting.message or waiting.reason), pod.changed)
        if waiting.reason in CONFIG_WAITS:
            return of_config(evidence.namespace, pod.task, waiting.message, quote)
        if waiting.reason in COMMAND_WAITS:
            return _of_command(pod.task, waiting.message, _container(pod, status.name), quote)
    return None


def _container(pod: Pod, name: str) -> Container:
    found = (*pod.spec.init_containers, *pod.spec.containers)
    return next((each for each in found if each.name == name), Container())


def of_end(evidence: Evidence, end: End) -> Iterator[Cause]:
    if end.reason not in COMMAND_ENDS and end.exit_code not in (NOT_EXECUTABLE, NOT_FOUND):
        return
    asked = evidence.container(end.task)
    words = tuple(str(word) for word in asked.get("command") or ())
    container = Container(image=str(asked.get("image") or ""), command=words)
    yield _of_command(end.task, end.text, container, end.quote(cut(end.text)), evidence.is_local)


# --- its image


def _of_image(evidence: Evidence, pod: Pod, status: ContainerStatus, waiting: Waiting) -> Cause:
    said = _longest(evidence, pod, waiting.message)
    image = _container(pod, status.name).image or status.image
    cause = of_pull(pod.task, f"{waiting.reason}: {said.text}", image, said)
    return _with_secret(evidence, pod, cause)


def _longest(evidence: Evidence, pod: Pod, message: str) -> Quote:
    """While it backs off, older kubelets say no more than that; the event has the registry's answer."""
    events = evidence.warnings(pod, "Failed", "InspectFailed", "ErrImageNeverPull")
    best = max(events, key=lambda event: len(event.message), default=None)
    if best is not None and len(best.message) >= len(message):
        return Quote("event", cut(best.message), best.at)
    return Quote("container", cut(message), pod.changed)


def of_pull(task: str, message: str, image: str, quote: Quote) -> Cause:
    named = image or (found[1] if (found := re.search(_IMAGE, message)) else "its image")
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


# --- its configuration and its command


def of_config(namespace: str, task: str, message: str, quote: Quote) -> Cause:
    """Also of a volume that is made of a ConfigMap or Secret."""
    sentence, fix, kind = f"{TASKS} cannot be configured: {cut(message)}", "", "config"
    if missing := re.search(_MISSING, message):
        name = {"configmap": "ConfigMap", "secret": "Secret"}[missing[1].lower()]
        kind, sentence = (
            f"{name.lower()}-missing",
            f"{TASKS} cannot start: there is no {name} {missing[2]} in namespace {namespace}",
        )
        fix = f"kubectl -n {namespace} create {_kind_word(name)} {missing[2]} --from-literal=KEY=VALUE"
    elif key := re.search(_KEY, message):
        kind, sentence = "key-missing", f"{TASKS} cannot start: {key[2]} {key[3]} has no key {key[1]}"
        fix = f"kubectl -n {namespace} edit {key[2].lower()} {key[3]}"
    elif key := re.search(_VOLUME_KEY, message):
        kind, sentence = (
            "key-missing",
            f"{TASKS} cannot start: a volume wants the key {key[1]}, which does not exist",
        )
    elif "runAsNonRoot" in message:
        kind, sentence = (
            "runs-as-root",
            f"{TASKS} cannot start: the image runs as root, and runAsNonRoot forbids that",
        )
        fix = "job file: `overlay: {spec: {securityContext: {runAsUser: 1000}}}`"
    return Cause(kind=kind, sentence=sentence, fix=fix, tasks=(task,), evidence=(quote,))


def _kind_word(name: str) -> str:
    return "secret generic" if name == "Secret" else "configmap"


def _of_command(task: str, message: str, container: Container, quote: Quote, is_local: bool = False) -> Cause:
    program = _program(message) or (container.command[0] if container.command else "")
    named = f"`{program}`" if program else "its command"
    image = f"the image {container.image}" if container.image else "the image"
    where = "on this machine" if is_local else f"in {image}"
    if "permission denied" in message.lower():
        words, fix = (
            f"{named} may not be executed",
            f"make it executable {where}: `chmod +x`, or run it by `python` or `sh`",
        )
    elif "exec format error" in message.lower():
        words, fix = (
            f"{named} is for another kind of processor",
            "build the image for the node's architecture",
        )
    else:
        fix = "job file: `run:`" + ("" if is_local else "; or an image that has it")
        words = f"{named} is not {where}"
    return Cause(
        kind="command", sentence=f"{TASKS} cannot start: {words}", fix=fix, tasks=(task,), evidence=(quote,)
    )


def _program(message: str) -> str:
    """As the container runtime names it, or a shell."""
    if found := re.search(_PROGRAM, message):
        return found["name"] or found["path"] or found["file"]
    found = re.search(_SHELL, message)
    return found["name"] if found else ""
