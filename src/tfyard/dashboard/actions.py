"""What a button does: GET says what would happen, as `tfyard` asks in a terminal; POST does it."""

import difflib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from aiohttp import web
from msgspec import Struct
from multidict import MultiMapping

from tfyard import aio
from tfyard.dashboard import addresses, buttons, commands
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.answers import address_of, fields_of, root, see_other, viewer_of, whole
from tfyard.dashboard.viewer import Viewer
from tfyard.errors import NotPossible, TfyardError
from tfyard.job_input import options
from tfyard.model import Job
from tfyard.model.names import TENSORBOARD_PORT
from tfyard.overview.wording import harmless
from tfyard.render import notebook
from tfyard.sdk.forwarding import Port
from tfyard.sdk.pages import LocalSide, Page
from tfyard.sdk.place import Done, HelperOptions, Intent, NotebookOptions, Place, RerunOptions

ASKING = ("restart", "scale", "rerun")
"""Actions that ask something before they say what would happen."""
TASK, COUNT, ENV, NAME, READY = "task", "n:", "env", "name", "show"


class ActionRequest(Struct, frozen=True, kw_only=True):
    """An action as a form asks for it."""

    action: str
    jobs: tuple[Address, ...]
    tasks: tuple[str, ...] = ()
    counts: dict[str, str] = {}
    """Role, such as worker -> its number of tasks."""
    env: str = ""
    name: str = ""
    is_ready: bool = False
    """Whether the user has answered what the action asks."""

    @property
    def words(self) -> tuple[str, ...]:
        """Arguments and options of the command."""
        if self.action == "restart":
            return self.tasks or ("--all",)
        if self.action == "scale":
            return self.sets
        if self.action == "rerun":
            env = [word for each in self.variables for word in ("--env", each)]
            sets = [word for each in self.sets for word in ("--set", each)]
            return (*sets, *env, *(("--name", self.name) if self.name else ()))
        return ()

    @property
    def sets(self) -> tuple[str, ...]:
        return tuple(f"{role}={count}" for role, count in self.counts.items() if count)

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(line.strip() for line in self.env.splitlines() if line.strip())


def read(action: str, fields: MultiMapping[Any], jobs: Sequence[Address]) -> ActionRequest:
    if action not in buttons.LABELS:
        raise NotPossible(f"there is no action {action!r}; there are {', '.join(buttons.LABELS)}")
    chosen = jobs or [addresses.read(str(key)) for key in fields.getall("job", [])]
    if not chosen:
        raise NotPossible("no job is chosen: mark some in the list first")
    counts = {key.removeprefix(COUNT): str(fields[key]).strip() for key in fields if key.startswith(COUNT)}
    return ActionRequest(
        action=action,
        jobs=tuple(dict.fromkeys(chosen)),
        tasks=tuple(map(str, fields.getall(TASK, []))),
        counts=counts,
        env=str(fields.get(ENV, "")),
        name=str(fields.get(NAME, "")).strip(),
        is_ready=READY in fields or action not in ASKING,
    )


def only_job(wish: ActionRequest) -> Address:
    if len(wish.jobs) > 1:
        raise NotPossible(f"{buttons.LABELS[wish.action]}: one job at a time")
    return wish.jobs[0]


def intend(place: Place, wish: ActionRequest) -> Intent:
    """What the action would do; raises if it is not possible."""
    if wish.action == "restart":
        return place.restart(wish.tasks)
    if wish.action == "scale":
        return place.scale(dict(options.replicas(text, "scale") for text in wish.sets))
    if wish.action == "rerun":
        changed = RerunOptions(sets=wish.sets, env=wish.variables, name=wish.name or None)
        return place.rerun(changed)
    plain = {"stop": place.stop, "resume": place.resume, "delete": place.delete}
    return plain[wish.action]()


class Preview(Struct, frozen=True, kw_only=True):
    """What an action would do to one job."""

    address: Address
    heading: str = ""
    goes: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    difference: tuple[tuple[str, str], ...] = ()
    """Lines of the spec with a word that says whether they come, go or stay."""
    problem: str = ""
    """Why it is not possible."""


async def previews(viewer: Viewer, wish: ActionRequest) -> list[Preview]:
    return [await aio.in_thread(_preview, viewer, wish, job) for job in wish.jobs]


def _preview(viewer: Viewer, wish: ActionRequest, job: Address) -> Preview:
    try:
        intent = intend(viewer.identity.find(job), wish)
        before, after = intent.compare() if intent.compare else ("", "")
    except TfyardError as problem:
        return Preview(address=job, problem=harmless(str(problem)))
    lasts = "the run goes on for as long as this dashboard runs"
    notes = (*intent.notes, *((lasts,) if intent.foreground else ()))
    return Preview(
        address=job,
        heading=intent.heading,
        goes=intent.goes,
        stays=intent.stays,
        notes=notes,
        difference=tuple(_difference(before, after)),
        problem="" if intent.perform else "; ".join(intent.notes),
    )


def _difference(before: str, after: str) -> list[tuple[str, str]]:
    kinds = {"+": "comes", "-": "goes", "@": "place"}
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
    return [(kinds.get(line[:1], "stays"), line) for line in list(lines)[2:]]


class ActionResult(Struct, frozen=True):
    texts: list[str]
    made: Address | None = None
    """The new job, if the action has made one."""


async def perform(viewer: Viewer, wish: ActionRequest) -> ActionResult:
    """Act on each job by itself: a problem of one is reported, and the others go on."""
    texts, made = list[str](), None
    for job in wish.jobs:
        try:
            intent, done = await aio.in_thread(_perform, viewer, wish, job)
            viewer.finish(intent, done)
            texts.append(done.text or f"{intent.heading}: asked for")
            if done.made:
                place = await aio.in_thread(done.made)
                made = Address(place.namespace, place.name)
        except TfyardError as problem:
            texts.append(f"{job.name}: {problem}")
        viewer.board.read_again(job)
    return ActionResult(texts, made)


def _perform(viewer: Viewer, wish: ActionRequest, job: Address) -> tuple[Intent, Done]:
    intent = intend(viewer.identity.find(job), wish)
    if intent.perform is None:
        raise NotPossible(f"unchanged: {'; '.join(intent.notes)}")
    return intent, intent.perform()


# --- forms


async def form(viewer: Viewer, wish: ActionRequest) -> dict[str, Any]:
    """The choices that the form of an action offers: the tasks, or the roles with their numbers of tasks."""
    if wish.action not in ASKING:
        return {"tasks": [], "roles": {}}
    place = await aio.in_thread(viewer.identity.find, wish.jobs[0])
    view = await aio.in_thread(place.view)
    return {"tasks": await aio.in_thread(place.tasks), "roles": _roles(view.job) if view.job else {}}


def _roles(job: Job) -> Mapping[str, int]:
    return {role.name.lower(): role.replicas for role in job.roles}


def command_lines(viewer: Viewer, wish: ActionRequest) -> list[str]:
    return commands.lines(wish.action, wish.jobs, wish.words, viewer.identity.options)


# --- pages that are opened


async def open_page(viewer: Viewer, wish: ActionRequest) -> None:
    """Open TensorBoard or Jupyter. A failure is shown on the job's page."""
    if not viewer.identity.opens_pages:
        raise NotPossible(f"on your own machine: `{command_lines(viewer, wish)[0]}`")
    address = only_job(wish)
    place = await aio.in_thread(viewer.identity.find, address)
    if wish.action == "tensorboard":
        here = LocalSide(Port(TENSORBOARD_PORT), lambda _text: None)
        viewer.opened.open(address, wish.action, lambda: place.tensorboard([], "", HelperOptions(), here))
    else:
        notebook.import_argon2()
        wanted = NotebookOptions(image=notebook.DEFAULT_IMAGE)
        here = LocalSide(Port(notebook.PORT), lambda _text: None)
        viewer.opened.open(address, wish.action, lambda: _single(place.notebook(wanted, here)))


@asynccontextmanager
async def _single(making: AbstractAsyncContextManager[Page]) -> AsyncIterator[list[Page]]:
    """A page as a list of one."""
    async with making as made:
        yield [made]


# --- answers


def _jobs(request: web.Request) -> list[Address]:
    """The job of the address; none: the fields of the form name the jobs."""
    return [address_of(request)] if "name" in request.match_info else []


async def ask(request: web.Request) -> web.Response:
    viewer = viewer_of(request)
    wish = read(request.match_info["action"], request.query, _jobs(request))
    if wish.action in buttons.PAGES:  # nothing has to be said before
        return see_other(root(request) + only_job(wish).path)
    known = await form(viewer, wish)
    shown = await previews(viewer, wish) if wish.is_ready or wish.action == "rerun" else []
    words = {
        "wish": wish,
        "label": buttons.LABELS[wish.action],
        "form": known,
        "previews": shown,
        "lines": command_lines(viewer, wish),
        "can_go_on": any(not each.problem for each in shown),
        "fields": [(key, value) for key, value in request.query.items() if key != "notice"],
    }
    return whole(request, "action.html", words)


async def act(request: web.Request) -> web.Response:
    viewer, fields = viewer_of(request), await fields_of(request)
    action = request.match_info["action"]
    fields.setdefault(READY, "1")
    wish = read(action, fields, _jobs(request))
    if action in buttons.PAGES:
        address = only_job(wish)
        if fields.get("shut"):
            await viewer.opened.shut(address, action)
        else:
            await open_page(viewer, wish)
        return see_other(root(request) + address.path)
    done = await perform(viewer, wish)
    number = viewer.notice(done.texts)
    stays = len(wish.jobs) == 1 and action != "delete"
    target = done.made or (wish.jobs[0] if stays else None)
    return see_other(f"{root(request)}{target.path if target else ''}?notice={number}")
