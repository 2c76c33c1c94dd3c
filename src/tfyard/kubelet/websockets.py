"""What exec, attach and port-forward share: the upgrade to a WebSocket, and its channels.

Each message begins with the number of its channel. The apiserver passes WebSockets through as they are, because
the node declares the feature ExtendWebSocketsToKubelet.
"""

from collections.abc import Sequence

from aiohttp import web

BIGGEST_MESSAGE = 64 << 20


async def upgrade(request: web.Request, protocols: Sequence[str]) -> web.WebSocketResponse:
    """Upgrade by the first of these protocols that the client offers; "" stands for a client that offers none."""
    if not _accepts_anything(request):
        raise web.HTTPNotAcceptable(text="406: Not Acceptable\n\nAvailable representations: ")
    offered = [name.strip() for name in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    is_websocket = request.headers.get("Upgrade", "").lower() == "websocket"
    if not is_websocket or not set(offered) & set(protocols):
        raise web.HTTPBadRequest(text=_refusal(request, protocols, offered if is_websocket else []))
    named = [name for name in protocols if name]
    socket = web.WebSocketResponse(
        protocols=[name for name in offered if name in named], max_msg_size=BIGGEST_MESSAGE, compress=False
    )
    await socket.prepare(request)
    return socket


def _accepts_anything(request: web.Request) -> bool:
    """The streaming server of a container runtime declares no media type, so a client that accepts only some is
    refused, although a WebSocket has none."""
    kinds = [each.partition(";")[0].strip() for each in request.headers.get("Accept", "*/*").split(",")]
    return "*/*" in kinds


def _refusal(request: web.Request, protocols: Sequence[str], offered: Sequence[str]) -> str:
    asked = ", ".join(filter(None, offered)) or request.headers.get("Upgrade") or "no upgrade"
    return (
        f"this node speaks {' or '.join(filter(None, protocols))} over a WebSocket, and was asked for {asked};"
        " kubectl 1.31 and later does so, unless KUBECTL_REMOTE_COMMAND_WEBSOCKETS or"
        " KUBECTL_PORT_FORWARD_WEBSOCKETS is false\n"
    )
