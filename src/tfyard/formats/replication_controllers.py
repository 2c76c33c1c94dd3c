"""Hand-written clusters of 2016, a ReplicationController and a Service for each task, -> one Job.

Both styles of that time are read: hosts in each command line, or in a ConfigMap (PS_KEY and WORKER_KEY); code by
`curl` and `unzip`, or from a volume. Tasks of a role may differ only in their index and node.
"""

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from tfyard.model import ROLES, TENSORFLOW_CONTAINER, WORKER, Code, Job, Manifest, Problem, Role, RunPolicy
from tfyard.model.names import DEFAULT_PORT

from . import limits, metadata, shell
from .declarations.reading import Notes, Path
from .pods import checks, templates
from .tfjob.fields import canonical, in_order
from .yaml.source import Document, locate

CONTROLLER = "ReplicationController"
_HOSTS = {"PS_KEY": "$PS_HOSTS", "WORKER_KEY": "$WORKER_HOSTS"}
_FLAGS = {
    "ps_hosts": "$PS_HOSTS",
    "worker_hosts": "$WORKER_HOSTS",
    "job_name": "$JOB_NAME",
    "task_index": "$TASK_INDEX",
}
_REDIRECTION = re.compile(r"(?:[ \t]+(?:[12&]?>>?[ \t]*[^\s;|&>]+|2>&1))+\s*$")
_FETCH = re.compile(
    r"curl\s+(?:-\S+\s+)*(?P<url>\S+?)\s*>\s*(?P<file>\S+?)\s*;\s*unzip\s+(?:-\S+\s+)*(?P=file)\s*;"
    r"\s*cd\s+(?P<folder>[^\s;]+?)/?\s*;\s*(?P<rest>.+)",
    re.DOTALL,
)
_PLAIN_SHELL = ("sh", "/bin/sh")
_SHELLS = ("sh", "bash", "dash", "ash", "ksh", "zsh")
_TEMPLATE: Path = ("spec", "template", "spec")


class Converted(Struct, kw_only=True):
    job: Job | None = None
    problems: list[tuple[Document, Problem]] = []
    said: list[str] = []
    """What changes, in words."""


class _Found(Struct, frozen=True, kw_only=True):
    """One controller: the task that it ran, and how."""

    document: Document
    role: str
    index: int
    template: Manifest
    port: int
    code: Code | None


def is_controller(data: object) -> bool:
    return isinstance(data, dict) and data.get("kind") == CONTROLLER


def load(documents: Sequence[Document]) -> Converted:
    """The one Job of all controllers. Their Services and host lists are dropped: tfyard creates its own."""
    result = Converted()
    found = [one for document in documents if is_controller(document.data) for one in _task(document, result)]
    if result.problems or not found:
        return result
    roles = {name: _role(name, [one for one in found if one.role == name], result) for name in _names(found)}
    _check_code(found, result)
    names = [str(one.document.data["metadata"]["name"]) for one in found]
    result.job = Job(
        name=_job_name(names),
        namespace=_namespaces(found)[0],
        roles=in_order(roles),
        run_policy=RunPolicy(clean="Running"),
        code=found[0].code,
    )
    _say(result, found, documents)
    _check(result, found[0].document)
    return result


def _check_code(found: list[_Found], result: Converted) -> None:
    for one in found:
        if one.code != found[0].code:
            text = "fetches different code than the other tasks, but a job has only one code"
            fix = "put the difference into the command, or the code into the image"
            result.problems.append((one.document, Problem(_TEMPLATE, text, fix)))


def _names(found: list[_Found]) -> list[str]:
    return list(dict.fromkeys(one.role for one in found))


def _namespaces(found: list[_Found]) -> list[str]:
    return sorted({str(one.document.data["metadata"].get("namespace") or "default") for one in found})


def _job_name(names: list[str]) -> str:
    """The common part of the names of all controllers: tensorflow-ps-rc, tensorflow-worker0-rc."""
    common = ""
    for letters in zip(*names, strict=False):
        if len(set(letters)) > 1:
            break
        common += letters[0]
    better = re.sub(r"(-(ps|worker|rc))*-*$", "", common)
    return better or "training"


def _task(document: Document, result: Converted) -> list[_Found]:
    notes = Notes()
    found = _read_task(document, notes, result)
    result.problems += [(document, problem) for problem in locate(notes.problems, document)]
    return [found] if found is not None else []


def _read_task(document: Document, notes: Notes, result: Converted) -> _Found | None:
    data: Manifest = _without_nulls(document.data)
    metadata.load(data, notes)
    template = _template(data, notes)
    if template is None:
        return None
    if data["spec"].get("replicas", 1) != 1:
        text = "must be 1: equal pods would all be the same task"
        notes.error(("spec", "replicas"), text, "set it to 1", data["spec"]["replicas"])
    spec: Manifest = template["spec"]
    containers: list[Manifest] = spec["containers"]
    words = _words(containers[0])
    role = _role_of(template, containers[0], words)
    if role is None:
        text = "the role of this task is unknown"
        notes.error(
            (*_TEMPLATE, "containers", 0), text, "add --job_name=ps (or worker), or the label role: ps"
        )
        return None
    index = re.search(r"--task_(?:index|id)[= ](\d+)", " ".join(words))
    container, code = _modern(containers[0], words, result)
    return _Found(
        document=document,
        role=role,
        index=int(index[1]) if index else 0,
        template={"spec": {**spec, "containers": [container]}},
        port=_port(containers[0]),
        code=code,
    )


def _template(data: Manifest, notes: Notes) -> Manifest | None:
    """The controller's pod template, if its types are right and it has one container."""
    spec = data.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    if not isinstance(template, dict):
        notes.error(("spec", "template"), "must be given", "add the pod template of the controller")
        return None
    found = [p for p in checks.unknown_fields(template, ("spec", "template")) if p.severity == "error"]
    notes.problems += found
    containers = [] if found else (template.get("spec") or {}).get("containers") or []
    if not found and len(containers) != 1:
        text = "must have one container, which trains"
        notes.error((*_TEMPLATE, "containers"), text, "remove the others, or write a job file by hand")
    return template if len(containers) == 1 and _is_complete(template["spec"], notes) else None


def _is_complete(spec: Manifest, notes: Notes) -> bool:
    before, path = len(notes.problems), (*_TEMPLATE, "containers", 0)
    (container,) = spec["containers"]
    if not container.get("image"):
        notes.error((*path, "image"), "must be given", "add the image to run")
    _check_items(spec, "volumes", _TEMPLATE, notes)
    _check_items(container, "env", path, notes)
    _check_items(container, "volumeMounts", path, notes)
    return len(notes.problems) == before


def _check_items(owner: Manifest, key: str, path: Path, notes: Notes) -> None:
    for i, item in enumerate(owner.get(key) or []):
        if not item.get("name"):
            notes.error((*path, key, i, "name"), "must be given")


def _without_nulls(value: Any) -> Any:
    """null means "not set" everywhere in Kubernetes."""
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value if part is not None]
    return value


def _words(container: Manifest) -> list[str]:
    return [str(word) for word in [*(container.get("command") or []), *(container.get("args") or [])]]


def _role_of(template: Manifest, container: Manifest, words: list[str]) -> str | None:
    labels = (template.get("metadata") or {}).get("labels") or {}
    flag = re.search(r"--job_name[= ](\w+)", " ".join(words))
    for word in (flag[1] if flag else "", labels.get("role", ""), container.get("name", "")):
        if found := canonical(str(word)):
            return found
    return None


def _port(container: Manifest) -> int:
    ports = container.get("ports") or [{}]
    number = ports[0].get("containerPort") if isinstance(ports[0], dict) else None
    return number if isinstance(number, int) else DEFAULT_PORT


def _modern(container: Manifest, words: list[str], result: Converted) -> tuple[Manifest, Code | None]:
    """The container of a role: hosts and index come from variables, and the output goes to the log."""
    kept = {k: v for k, v in container.items() if k not in ("name", "command", "args", "env", "ports")}
    code = None
    if len(words) == 3 and words[1] == "-c" and words[0].rpartition("/")[2] in _SHELLS:
        line, code, workdir = _line(words[2], result)
        command = [*shell.SHELL, shell.with_exec(line)] if words[0] in _PLAIN_SHELL else [*words[:2], line]
        kept |= {"command": command, **({"workingDir": workdir} if workdir else {})}
    elif words:
        kept["command"] = [_with_variables(word, "$({})") for word in words]
    env = [entry for entry in container.get("env") or [] if entry.get("name") not in _HOSTS]
    return {"name": TENSORFLOW_CONTAINER, **kept, **({"env": env} if env else {})}, code


def _line(text: str, result: Converted) -> tuple[str, Code | None, str]:
    text = text.strip()  # and no more: line breaks, and spaces in quotes, have a meaning
    line = _REDIRECTION.sub("", text)
    if line != text:
        ends = text[len(line) :].strip()
        _say_once(result, f"redirection `{ends}` removed: the output goes to the log")
    line = _with_variables(line, "${}")
    fetch = _FETCH.fullmatch(line)
    if fetch is None:
        return line, None, ""
    _say_once(
        result,
        "`curl` and `unzip` in the command replaced by `code`, which is fetched before the program starts",
    )
    code = Code(kind="http", source=fetch["url"])
    inner = fetch["folder"].partition("/")[2]
    return fetch["rest"].strip(), code, f"{code.at}/{inner}" if inner else code.at


def _with_variables(text: str, form: str) -> str:
    for name, variable in _HOSTS.items():
        text = text.replace(f"$({name})", form.format(variable[1:]))
    for flag, variable in _FLAGS.items():
        value = form.format(variable[1:])
        text = re.sub(rf"(--{flag}[= ])\S+", lambda found: found[1] + value, text)  # noqa: B023
    return text


def _role(name: str, tasks: list[_Found], result: Converted) -> Role:
    tasks = sorted(tasks, key=lambda one: one.index)
    indexes = [one.index for one in tasks]
    if indexes != list(range(len(tasks))):
        text = f"the tasks of {name} have the indexes {', '.join(map(str, indexes))}"
        fix = f"number them 0 to {len(tasks) - 1} with --task_index"
        result.problems.append((tasks[-1].document, Problem(_TEMPLATE, text, fix)))
    template = _common(name, tasks, result)
    return Role(
        name=name,
        replicas=len(tasks),
        restart="OnFailure",
        template=templates.load(template, _TEMPLATE, Notes()),
        port=tasks[0].port,
    )


def _common(name: str, tasks: list[_Found], result: Converted) -> Manifest:
    """The template of all tasks of a role. They may run on different nodes; else they must be equal."""
    nodes = {one.template["spec"].get("nodeName") for one in tasks}
    bare = [_without_node(one.template) for one in tasks]
    if len(nodes) > 1:
        _say_once(
            result,
            f"nodeName of {name} removed: tasks had different nodes; `spread` keeps tasks on different nodes",
        )
    for one, template in zip(tasks, bare, strict=True):
        if template != bare[0]:
            text = f"{name} {one.index} differs from {name} 0 in more than index and node"
            result.problems.append((one.document, Problem(_TEMPLATE, text, "make the pod templates equal")))
    return tasks[0].template if len(nodes) == 1 else bare[0]


def _without_node(template: Manifest) -> Manifest:
    return {"spec": {key: value for key, value in template["spec"].items() if key != "nodeName"}}


def _say(result: Converted, found: list[_Found], documents: Sequence[Document]) -> None:
    _say_once(
        result, "a task is restarted when it fails; ReplicationControllers restarted every task that ended"
    )
    end = "worker 0" if any(one.role == WORKER for one in found) else "the chief"
    _say_once(result, f"the job ends when {end} ends; parameter servers are stopped then")
    for one in found:
        _say_dropped(result, one, _selected(documents))
    namespaces = _namespaces(found)
    if len(namespaces) > 1:
        _say_once(result, f"namespaces {', '.join(namespaces)}: a job has only one; {namespaces[0]} is used")
    for document in documents:
        data = document.data if isinstance(document.data, dict) else {}
        entries = data.get("data")
        if data.get("kind") == "ConfigMap" and isinstance(entries, dict) and set(entries) - {"ps", "worker"}:
            meta = data.get("metadata")
            name = meta.get("name") if isinstance(meta, dict) else ""
            _say_once(result, f"ConfigMap {name} not converted: keep it")
        elif data.get("kind") not in ("Service", "ConfigMap", CONTROLLER):
            _say_once(result, f"{data.get('kind', 'a document')} skipped")


def _say_dropped(result: Converted, one: _Found, selected: set[str]) -> None:
    """What a pod had and a task does not have. Labels of selectors, and the role, are created by tfyard."""
    template: Manifest = _without_nulls(one.document.data)["spec"]["template"]
    meta = template.get("metadata") or {}
    labels = sorted(set(meta.get("labels") or {}) - selected - {"role"})
    if labels:
        _say_once(result, f"labels of the pods removed: {', '.join(labels)}")
    if annotations := sorted(meta.get("annotations") or {}):
        _say_once(result, f"annotations of the pods removed: {', '.join(annotations)}")
    ports = (template["spec"]["containers"][0].get("ports") or [])[1:]
    if numbers := ", ".join(str(port.get("containerPort")) for port in ports):
        _say_once(result, f"further ports removed: {numbers}; a task has one port")


def _selected(documents: Sequence[Document]) -> set[str]:
    """The labels in the selectors of controllers and Services."""
    specs = [document.data.get("spec") for document in documents if isinstance(document.data, dict)]
    selectors = [spec.get("selector") for spec in specs if isinstance(spec, dict)]
    return {str(label) for selector in selectors if isinstance(selector, dict) for label in selector}


def _say_once(result: Converted, sentence: str) -> None:
    sentence = " ".join(sentence.split())  # one line: it becomes a comment
    if sentence not in result.said:
        result.said.append(sentence)


def _check(result: Converted, document: Document) -> None:
    if result.job is None:
        return
    notes = Notes()
    paths: dict[str, Path] = dict.fromkeys(ROLES, ("spec",))
    limits.check(result.job, limits.Where(("metadata", "name"), (), paths, "replicas", ("spec",)), notes)
    result.problems += [(document, problem) for problem in locate(notes.problems, document)]
