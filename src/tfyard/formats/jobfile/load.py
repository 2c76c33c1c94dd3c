"""Job file -> Job: the words become a pod template for each role."""

from collections.abc import Callable
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from tfyard.errors import Invalid
from tfyard.formats import durations, limits, metadata, mlflow, quantities, shell, stalls
from tfyard.formats.declarations.reading import Notes, Path, read
from tfyard.formats.pods import images, overlay, templates
from tfyard.formats.pods import volumes as pod_volumes
from tfyard.model import (
    ROLES,
    TENSORFLOW_CONTAINER,
    WORKER,
    Job,
    Manifest,
    MLflow,
    RestartPolicy,
    Role,
    RunPolicy,
    SchedulingPolicy,
    Stall,
    TensorBoard,
)
from tfyard.model.expansion import references
from tfyard.model.names import GPU, JOB_NAME, PORT_NAME, QUEUE_NAME

from . import blame, code, volumes
from .words import BoardWords, GangWords, JobFile, PodWords, RoleWords, StallWords, VolumeWords

RESTART: dict[str, RestartPolicy] = {
    "never": "Never",
    "on-failure": "OnFailure",
    "always": "Always",
    "exit-code": "ExitCode",
}
CLEAN: dict[str, Any] = {"all": "All", "running": "Running", "none": "None"}

Text = Callable[[Path], str | None]
"""Gives a scalar as it is written in the file: environment variables keep `on`, `010` and `1:30` as text."""


def load(data: Manifest, text: Text, notes: Notes) -> Job | None:
    words = read(JobFile, {**data, "name": _name(data.get("name"), notes)}, (), notes)
    if words is None:
        return None
    _check_volumes(words, notes)
    namespace = words.namespace or "default"
    return Job(
        name=words.name,
        namespace=namespace,
        labels={**words.labels, **({QUEUE_NAME: words.queue} if words.queue else {})},
        roles=_Roles(words, text, notes).load(),
        run_policy=_run_policy(words, notes),
        success="AllWorkers" if words.success == "all-workers" else "",
        dynamic_workers=words.dynamic,
        together=words.together,
        dialect=words.dialect,
        services=words.services,
        tensorboard=_tensorboard(words, notes),
        code=code.load(words, _volumes(words), notes),
        tf1=words.tf1,
        mlflow=_mlflow(words, notes),
        objects=_claims(words, namespace),
    )


def _name(value: object, notes: Notes) -> str:
    """The name, or a default if it is invalid, so that the other problems of the file are reported, too."""
    if isinstance(value, str):
        metadata.check_name(value, ("name",), notes)
        return value
    if value is None:
        notes.error(("name",), "must be given", "give the job a name, such as mnist")
    else:
        notes.error(("name",), "must be text", "quote it", value)
    return "job"


def where(job: Job) -> limits.FieldPaths:
    roles: dict[str, Path] = {role.name: (role.name.lower(),) for role in job.roles}
    return limits.FieldPaths(("name",), (), roles, "count", ("gang", "atLeast"))


def role_words(words: JobFile) -> dict[str, RoleWords]:
    """Role -> its own words. A file without any role means one worker."""
    roles = {name: getattr(words, name.lower()) for name in ROLES}
    roles = {name: value for name, value in roles.items() if value is not None} or {WORKER: 1}
    return {
        name: RoleWords(count=value) if isinstance(value, int) else value for name, value in roles.items()
    }


def _check_volumes(words: JobFile, notes: Notes) -> None:
    claims: dict[str | None, Manifest] = {}
    for path, volume in _volumes(words).items():
        volumes.check(str(path[-1]), volume, path, notes)
        if volume.size and claims.setdefault(volume.claim, claim := volumes.claim(volume, "")) != claim:
            text = f"the claim {volume.claim} is created twice, with different settings"
            notes.error((*path, "claim"), text, "give its size once", volume.claim)
    if isinstance(words.tensorboard, BoardWords):
        _check_board_volumes(words.tensorboard.volumes or {}, notes)


def _check_board_volumes(board_volumes: dict[str, VolumeWords], notes: Notes) -> None:
    """Volumes of TensorBoard need a check of their own, because they are in no pod template."""
    mounts = [volumes.mount(name, words) for name, words in board_volumes.items()]
    spec: Manifest = {"volumes": [volumes.volume(name, words) for name, words in board_volumes.items()]}
    spec["containers"] = [{"volumeMounts": mounts}]
    inner, owners = Notes(), blame.Owners({("tensorboard",): PodWords(volumes=board_volumes)})
    pod_volumes.check(spec, ("spec",), inner)
    notes.extend(blame.blamed(problem, {"spec": spec}, owners) for problem in inner.problems)


def _volumes(words: JobFile) -> dict[Path, VolumeWords]:
    """Every volume of the file by its path: at the top, in a role, in `tensorboard`."""
    board = words.tensorboard.volumes if isinstance(words.tensorboard, BoardWords) else None
    owners: dict[Path, dict[str, VolumeWords]] = {(): words.volumes, ("tensorboard",): board or {}}
    owners |= {(name.lower(),): own.volumes for name, own in role_words(words).items()}
    return {
        (*path, "volumes", name): own for path, by_name in owners.items() for name, own in by_name.items()
    }


class _Roles:
    """Builds the roles of one file."""

    def __init__(self, words: JobFile, text: Text, notes: Notes) -> None:
        self.words, self.text, self.notes = words, text, notes

    def load(self) -> tuple[Role, ...]:
        return tuple(self._role(name, own) for name, own in role_words(self.words).items())

    def _role(self, name: str, own: RoleWords) -> Role:
        path: Path = (name.lower(),)
        built = self._overlaid(self._template(own, path), own, path)
        inner = Notes()
        template = templates.load(built, (), inner)
        role = Role(
            name=name,
            replicas=own.count,
            restart=RESTART[own.restart or self.words.restart or "never"],
            template=template,
            port=templates.port(template),
        )
        templates.check_restart(role, (), "use the word `restart`", inner)
        problems = [p for p in inner.problems if not blame.is_repeated(p, built)]
        problems = [p for p in problems if not (blame.is_missing_image(p) and self._has_bad_image(path))]
        owners: dict[Path, PodWords] = {(): self.words, path: own}
        self.notes.extend(blame.blamed(problem, built, owners) for problem in problems)
        return role

    def _has_bad_image(self, path: Path) -> bool:
        """Whether the file has an image whose problem is already reported."""
        paths = (("image",), (*path, "image"))
        return any(p.path in paths and p.value is not UNSET for p in self.notes.problems)

    def _overlaid(self, template: Manifest, own: PodWords, path: Path) -> Manifest:
        patch: Manifest
        where: Path
        for patch, where in ((self.words.overlay, ("overlay",)), (own.overlay, (*path, "overlay"))):
            try:
                template = overlay.merge(template, patch)
            except Invalid as error:
                self.notes.extend(replace(p, path=(*where, *p.path)) for p in error.problems)
        return template

    def _template(self, own: PodWords, path: Path) -> Manifest:
        top = self.words
        mounted = {**top.volumes, **own.volumes}
        spec: Manifest = {"containers": [self._container(own, path, mounted)]}
        if mounted:
            spec["volumes"] = [volumes.volume(name, words) for name, words in mounted.items()]
        secrets = own.pull_secret or top.pull_secret or []
        names = [secrets] if isinstance(secrets, str) else secrets
        spec |= _non_empty(
            imagePullSecrets=[{"name": name} for name in names],
            serviceAccountName=own.service_account or top.service_account,
            nodeSelector={**top.node_selector, **own.node_selector},
            nodeName=own.node or top.node,
            tolerations=[*top.tolerations, *own.tolerations],
            affinity=affinity(own.spread or top.spread, top.name),
        )
        grace = self._stop_grace(own, path)
        spec |= {} if grace is None else {"terminationGracePeriodSeconds": grace}
        meta = _non_empty(
            labels={**top.labels, **own.labels}, annotations={**top.annotations, **own.annotations}
        )
        return {**({"metadata": meta} if meta else {}), "spec": spec}

    def _stop_grace(self, own: PodWords, path: Path) -> int | None:
        chosen, where = (own, path) if own.stop_grace is not None else (self.words, ())
        if chosen.stop_grace is None:
            return None
        return durations.read(chosen.stop_grace, (*where, "stopGrace"), self.notes)

    def _container(self, own: PodWords, path: Path, mounted: dict[str, VolumeWords]) -> Manifest:
        top = self.words
        run = own.run if own.run is not None else top.run
        self._check_run(run, path if own.run is not None else ())
        port = own.port or top.port
        workdir = own.workdir or top.workdir or (code.mount_path(top) if top.code else None)
        return {
            "name": TENSORFLOW_CONTAINER,
            "image": own.image or top.image or "",
            **_non_empty(
                command=shell.command(run) if isinstance(run, str) else run,
                workingDir=workdir,
                env=self._env(own, path),
                ports=[{"name": PORT_NAME, "containerPort": port}] if port else None,
                resources=_resources(top, own),
                volumeMounts=[volumes.mount(name, words) for name, words in mounted.items()],
            ),
        }

    def _check_run(self, run: str | list[str] | None, path: Path) -> None:
        """Warns about Kubernetes' `$(NAME)`: a shell would run NAME, but programs are not named in capitals."""
        if not isinstance(run, str):
            return
        if not run.strip():
            fix = "give the command, or remove it to run the image's entrypoint"
            self.notes.error((*path, "run"), "must not be empty", fix, run)
        for name in (name for name in sorted(references(run)) if name.isupper()):
            text = f"the shell takes $({name}) for a program to run"
            self.notes.warn((*path, "run"), text, f"for the variable, write ${name}")

    def _env(self, own: PodWords, path: Path) -> list[Manifest]:
        values = {**self._texts(self.words, ()), **self._texts(own, path)}
        secrets = {**self._secrets(self.words, ()), **self._secrets(own, path)}
        hidden = [{"name": name, "valueFrom": source} for name, source in secrets.items()]
        plain = [{"name": name, "value": value} for name, value in values.items() if name not in secrets]
        return hidden + plain  # a value may refer to the variables before it

    def _texts(self, words: PodWords, path: Path) -> dict[str, str]:
        return {name: self._as_written((*path, "env", name), value) for name, value in words.env.items()}

    def _as_written(self, path: Path, value: object) -> str:
        text = self.text(path)
        if text is not None:
            return text
        return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

    def _secrets(self, words: PodWords, path: Path) -> dict[str, Manifest]:
        sources = {}
        for name, source in words.secrets.items():
            secret, _, key = source.partition("/")
            if not secret or not key:
                self.notes.error(
                    (*path, "secrets", name), "must be SECRET/KEY", 'for example "my-secret/token"', source
                )
            sources[name] = {"secretKeyRef": {"name": secret, "key": key}}
        return sources


def _non_empty(**parts: Any) -> Manifest:
    return {key: part for key, part in parts.items() if part}


def _resources(top: PodWords, own: PodWords) -> Manifest:
    """Limits equal requests, so that no task uses the resources of another."""
    cpu, memory = own.cpu or top.cpu, own.memory or top.memory
    requests = _non_empty(cpu=cpu and str(cpu), memory=memory and str(memory))
    gpu = own.gpu if own.gpu is not None else top.gpu
    devices = gpu if isinstance(gpu, dict) else {GPU: gpu} if gpu else {}
    limits = {**requests, **devices}
    return _non_empty(requests=requests, limits=limits)


def affinity(spread: str | None, job: str) -> Manifest | None:
    if spread is None:
        return None
    term = {"labelSelector": {"matchLabels": {JOB_NAME: job}}, "topologyKey": "kubernetes.io/hostname"}
    if spread == "require":
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    weighted = {"weight": 100, "podAffinityTerm": term}
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}


def _run_policy(words: JobFile, notes: Notes) -> RunPolicy:
    def seconds(value: str | int | None, *path: str) -> int | None:
        return None if value is None else durations.read(value, path, notes)

    grace = getattr(words.evaluator, "grace", None)
    deadline = seconds(words.deadline, "deadline")
    if deadline == 0:
        notes.error(("deadline",), "must be at least 1 second", "remove it for no deadline", words.deadline)
    return RunPolicy(
        clean=CLEAN[words.clean],
        ttl=seconds(words.keep_for, "keepFor"),
        deadline=deadline,
        backoff_limit=words.retries,
        suspend=words.suspend,
        scheduling=_scheduling(words.gang, notes),
        evaluator_grace=seconds(grace, "evaluator", "grace") or 0,
        stall=_stall(words.stall, notes),
    )


def _stall(words: StallWords | str | int | None, notes: Notes) -> Stall | None:
    if words is None:
        return None
    if isinstance(words, StallWords):
        return stalls.checked(words.after, words.then, ("stall", "after"), notes)
    return stalls.checked(words, "report", ("stall",), notes)


def _scheduling(gang: GangWords | bool, notes: Notes) -> SchedulingPolicy | None:
    if isinstance(gang, bool):
        return SchedulingPolicy() if gang else None
    timeout = None if gang.timeout is None else durations.read(gang.timeout, ("gang", "timeout"), notes)
    resources = None if gang.resources is None else {k: str(v) for k, v in gang.resources.items()}
    for name, value in (resources or {}).items():
        notes.extend(quantities.problems(value, ("gang", "resources", name)))
    return SchedulingPolicy(
        min_available=gang.at_least,
        queue=gang.queue,
        priority_class=gang.priority_class,
        min_resources=resources,
        timeout=timeout,
    )


def _tensorboard(words: JobFile, notes: Notes) -> TensorBoard | None:
    """Without volumes of its own, TensorBoard mounts those at the top of the file, as the tasks do."""
    board = words.tensorboard
    if board is None:
        return None
    if isinstance(board, str):
        board = BoardWords(logs=board)
    if board.image:
        images.check(board.image, ("tensorboard", "image"), notes)
    mounted = words.volumes if board.volumes is None else board.volumes
    return TensorBoard(
        log_dir=board.logs,
        image=board.image,
        service_type=board.service,
        volumes=tuple(volumes.volume(name, volume) for name, volume in mounted.items()),
        mounts=tuple(volumes.mount(name, volume) for name, volume in mounted.items()),
    )


def _mlflow(words: JobFile, notes: Notes) -> MLflow | None:
    if words.mlflow is None:
        return None
    mlflow.check(words.mlflow, ("mlflow",), notes)
    return MLflow(uri=words.mlflow)


def _claims(words: JobFile, namespace: str) -> tuple[Manifest, ...]:
    """Claims to create; each is listed once, even if several roles mount it."""
    sized = [volume for volume in _volumes(words).values() if volume.size is not None]
    return tuple({volume.claim: volumes.claim(volume, namespace) for volume in sized}.values())
