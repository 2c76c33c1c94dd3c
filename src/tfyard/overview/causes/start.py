"""Causes of containers that cannot be started: their image cannot be pulled, their command is wrong, or a
ConfigMap, Secret or key is missing."""

import re
from collections.abc import Iterable, Iterator

from tfyard.model.container_reasons import IMAGE_PROBLEMS, START_ERRORS
from tfyard.overview import references
from tfyard.overview.cause import TASKS, Cause, Quote, cut
from tfyard.overview.causes import image_pulls, other_containers
from tfyard.overview.evidence import End, Evidence
from tfyard.overview.references import Reference
from tfyard.views.pods import ContainerDetails, ContainerStatusDetails, PodDetails

CONFIG_WAITS = {"CreateContainerConfigError", "CreateContainerError", "CreatePodSandboxError"}
COMMAND_WAITS = {"RunContainerError", "StartError", "PostStartHookError"}
COMMAND_ENDS = START_ERRORS | {"RunContainerError"}
_MISSING = r'(?i)\b(configmap|secret) "([^"]+)" not found'
_KEY = r"couldn't find key (\S+) in (ConfigMap|Secret) [\w.-]+/([\w.-]+)"
_VOLUME_KEY = r"references non-existent (?:config|secret) key: (\S+)"
_UNSTARTED = r"tfyard: cannot start (?P<name>.+?): "
"""How a run on this machine reports a program that cannot be started."""
_PROGRAM = r'exec: "(?P<name>[^"]+)"|exec (?P<path>/\S+?):|stat (?P<file>/\S+?):'
_SHELL = r"(?:^|\n)(?:[\w/.-]+: )*(?:line \d+: |\d+: )?(?P<name>[^\s:]+): (?:command )?not found"
NOT_EXECUTABLE, NOT_FOUND = 126, 127


def of_pod(evidence: Evidence, pod: PodDetails) -> Cause | None:
    for status in pod.statuses:
        if cause := _of_container(evidence, pod, status):
            return other_containers.of_container(pod, status.name, cause)
    return None


def _of_container(evidence: Evidence, pod: PodDetails, status: ContainerStatusDetails) -> Cause | None:
    waiting = status.state.waiting
    if waiting is None:
        return None
    if waiting.reason in IMAGE_PROBLEMS:
        image = _container(pod, status.name).image
        return image_pulls.of_container(evidence, pod, status, waiting, image)
    quote = Quote("container", cut(waiting.message or waiting.reason), pod.changed)
    if waiting.reason in CONFIG_WAITS:
        return of_config(evidence, pod, waiting.message, quote)
    if waiting.reason in COMMAND_WAITS:
        return _of_command(evidence, pod.task, waiting.message, _container(pod, status.name), quote)
    return None


def _container(pod: PodDetails, name: str) -> ContainerDetails:
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return next((container for container in containers if container.name == name), ContainerDetails())


def of_end(evidence: Evidence, end: End) -> Iterator[Cause]:
    is_unstarted = end.reason in COMMAND_ENDS or re.search(_UNSTARTED, end.text)
    if not is_unstarted and end.exit_code not in (NOT_EXECUTABLE, NOT_FOUND):
        return
    if not is_unstarted and not _program(end.text):
        yield _of_script(end)
        return
    asked = evidence.container(end.task, end.init_container)
    words = tuple(str(word) for word in asked.get("command") or ())
    paths = [str(mount.get("mountPath")) for mount in asked.get("volumeMounts") or ()]
    container = ContainerDetails(image=str(asked.get("image") or ""), command=words)
    if is_unstarted and (over := _hiding(paths, _program(end.text) or "".join(words[:1]))):
        yield _hidden(end, over)
        return
    yield _of_command(evidence, end.task, end.text, container, end.quote(cut(end.text)))


def _of_script(end: End) -> Cause:
    """The cause of an exit code by which shells report a command of a script, if the shell did not name it."""
    what = "was not found" if end.exit_code == NOT_FOUND else "could not be executed"
    sentence = f"{TASKS} ended with exit code {end.exit_code}: a shell's word for a command that {what}"
    fix = "look which command of the script it is, or which `exit`: the log does not name it"
    return Cause(kind="command", sentence=sentence, fix=fix, tasks=(end.task,), evidence=(end.quote(),))


def _hiding(paths: Iterable[str], program: str) -> str:
    """The mount path that hides a program of the system, such as /usr; on most systems, /bin is a part of /usr."""
    is_of_system = program.startswith(("/bin/", "/usr/", "/lib")) or "/" not in program
    return next((path for path in paths if is_of_system and path in ("/usr", "/bin", "/usr/bin", "/lib")), "")


def _hidden(end: End, path: str) -> Cause:
    sentence = f"{TASKS} cannot start: a volume is mounted over {path}, and hides the programs there"
    fix = f"mount it at a path of its own, instead of `{path}`"
    return Cause(kind="command", sentence=sentence, fix=fix, tasks=(end.task,), evidence=(end.quote(),))


# --- configuration and command


def of_config(evidence: Evidence, pod: PodDetails, message: str, quote: Quote, task: str = "") -> Cause:
    """The cause of a missing ConfigMap, Secret or key, for a container or a volume. `task`: of a pod that may not
    be read."""
    namespace, task = evidence.namespace, task or pod.task
    sentence, fix, kind = f"{TASKS} cannot be configured: {cut(message)}", "", "config"
    if missing := re.search(_MISSING, message):
        name = {"configmap": references.CONFIG_MAP, "secret": references.SECRET}[missing[1].lower()]
        absent = Reference(name, missing[2], _keys(evidence, task, name, missing[2]))
        kind, sentence = (
            f"{name.lower()}-missing",
            f"{TASKS} cannot start: there is no {name} {missing[2]} in namespace {namespace}",
        )
        fix = references.creation(namespace, absent)
    elif key := re.search(_KEY, message):
        kind, sentence = "key-missing", f"{TASKS} cannot start: {key[2]} {key[3]} has no key {key[1]}"
        fix = references.addition(namespace, Reference(key[2], key[3]), [key[1]])
    elif key := re.search(_VOLUME_KEY, message):
        users = [each for each in evidence.references(task) if key[1] in each.keys]
        wants = f"{TASKS} cannot start: a volume wants the key {key[1]}, which"
        kind, sentence = "key-missing", f"{wants} does not exist"
        if len(users) == 1:
            sentence = f"{wants} {users[0].kind} {users[0].name} does not have"
            fix = references.addition(namespace, users[0], [key[1]])
    elif "runAsNonRoot" in message:
        kind, sentence = (
            "runs-as-root",
            f"{TASKS} cannot start: the image runs as root, and runAsNonRoot forbids that",
        )
        fix = "job file: `overlay: {spec: {securityContext: {runAsUser: 1000}}}`"
    return Cause(kind=kind, sentence=sentence, fix=fix, tasks=(task,), evidence=(quote,))


def _keys(evidence: Evidence, task: str, kind: str, name: str) -> frozenset[str]:
    """The keys of an object that the pods of a task need."""
    needed = (each.keys for each in evidence.references(task) if (each.kind, each.name) == (kind, name))
    return frozenset().union(*needed)


def _of_command(
    evidence: Evidence, task: str, message: str, container: ContainerDetails, quote: Quote
) -> Cause:
    program = _program(message) or (container.command[0] if container.command else "")
    named = f"`{program}`" if program else "its command"
    image = f"the image {container.image}" if container.image else "the image"
    where = "on this machine" if evidence.is_local else f"in {image}"
    if "permission denied" in message.lower():
        words, fix = f"{named} may not be executed", _executable(evidence, program, where)
    elif "exec format error" in message.lower():
        words, fix = (
            f"{named} is for another kind of processor",
            "build the image for the node's architecture",
        )
    elif "argument list too long" in message.lower():
        words = "its arguments and environment are larger than Linux starts a program with"
        fix = "put long values into a file, and give its path"
    else:
        fix = "job file: `run:`" + ("" if evidence.is_local else "; or an image that has it")
        words = f"{named} is not {where}"
    return Cause(
        kind="command", sentence=f"{TASKS} cannot start: {words}", fix=fix, tasks=(task,), evidence=(quote,)
    )


def _executable(evidence: Evidence, program: str, where: str) -> str:
    """What makes a program executable: in the folder of the code, if it is a file of that."""
    file = evidence.of_code(program)
    command = f"chmod +x {file}" if file else "chmod +x"
    again = ", and submit it again" if file and not evidence.is_local else ""
    where = "in the folder of the code" if file else where
    return f"make it executable {where}: `{command}`{again}; or run it by `python` or `sh`"


def _program(message: str) -> str:
    """Name of the missing program in a message of the container runtime or a shell."""
    if match := re.search(_PROGRAM, message):
        return match["name"] or match["path"] or match["file"]
    match = re.search(_UNSTARTED, message) or re.search(_SHELL, message)
    return match["name"] if match else ""
