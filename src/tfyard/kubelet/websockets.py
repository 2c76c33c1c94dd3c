"""What exec, attach and port-forward share: the upgrade to a WebSocket, and its channels.

Each message begins with the number of its channel. The apiserver passes WebSockets through as they are, because
the node declares the feature ExtendWebSocketsToKubelet.
"""

from collections.abc import Sequence

from aiohttp import web

BIGGEST_MESSAGE = 64 << 20


async def upgrade(request: web.Request, protocols: Sequence[str]) -> web.WebSocketResponse:
    """By the first of these protocols that the client offers; "" stands for a client that offers none."""
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


def _refusal(request: web.Request, protocols: Sequence[str], offered: Sequence[str]) -> str:
    asked = ", ".join(filter(None, offered)) or request.headers.get("Upgrade") or "no upgrade"
    return (
        f"this node speaks {' or '.join(filter(None, protocols))} over a WebSocket, and was asked for {asked};"
        " kubectl 1.31 and later does so, unless KUBECTL_REMOTE_COMMAND_WEBSOCKETS or"
        " KUBECTL_PORT_FORWARD_WEBSOCKETS is false\n"
    )
