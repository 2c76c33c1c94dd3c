"""A container cannot be started: a ConfigMap, Secret or key that it needs is missing, or its command is wrong."""

import re
from collections.abc import Iterator

from tfyard.overview.cause import TASKS, Cause, Quote, cut
from tfyard.overview.evidence import End, Evidence
from tfyard.overview.objects import Container, Pod

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
            f"{TASKS} cannot start: a volume wants the key {key[1]}, which is not there",
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
    place = "on this machine" if is_local else f"in {image}"
    if "permission denied" in message.lower():
        words, fix = (
            f"{named} may not be executed",
            f"make it executable {place}: `chmod +x`, or run it by `python` or `sh`",
        )
    elif "exec format error" in message.lower():
        words, fix = (
            f"{named} is for another kind of processor",
            "build the image for the node's architecture",
        )
    else:
        fix = "job file: `run:`" + ("" if is_local else "; or an image that has it")
        words = f"{named} is not {place}"
    return Cause(
        kind="command", sentence=f"{TASKS} cannot start: {words}", fix=fix, tasks=(task,), evidence=(quote,)
    )


def _program(message: str) -> str:
    """As the container runtime names it, or a shell."""
    if found := re.search(_PROGRAM, message):
        return found["name"] or found["path"] or found["file"]
    found = re.search(_SHELL, message)
    return found["name"] if found else ""
