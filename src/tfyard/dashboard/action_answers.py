"""The addresses of actions: GET says what would happen, POST does it."""

from aiohttp import web
from multidict import MultiDict

from tfyard.dashboard import actions, buttons
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.answers import address_of, root, see_other, viewer_of, whole


def _jobs(request: web.Request) -> list[Address]:
    """The job of the address; none: the form names them."""
    return [address_of(request)] if "name" in request.match_info else []


async def ask(request: web.Request) -> web.Response:
    viewer = viewer_of(request)
    wish = actions.read(request.match_info["action"], request.query, _jobs(request))
    known = await actions.form(viewer, wish)
    previews = await actions.previews(viewer, wish) if wish.is_ready or wish.action == "rerun" else []
    words = {
        "wish": wish,
        "label": buttons.LABELS[wish.action],
        "form": known,
        "previews": previews,
        "lines": actions.command_lines(viewer, wish),
        "can_go_on": any(not each.problem for each in previews),
        "fields": [(key, value) for key, value in request.query.items() if key != "notice"],
    }
    return whole(request, "action.html", words)


async def act(request: web.Request) -> web.Response:
    viewer, fields = viewer_of(request), MultiDict(await request.post())
    action = request.match_info["action"]
    fields.setdefault(actions.READY, "1")
    wish = actions.read(action, fields, _jobs(request))
    if action in buttons.PAGES:
        (address,) = wish.jobs
        if fields.get("shut"):
            await viewer.opened.shut(address, action)
        else:
            await actions.open_page(viewer, wish)
        return see_other(root(request) + address.path)
    done = await actions.perform(viewer, wish)
    number = viewer.notice(done.texts)
    stays = len(wish.jobs) == 1 and action != "delete"
    target = done.made or (wish.jobs[0] if stays else None)
    return see_other(f"{root(request)}{target.path if target else ''}?notice={number}")
