"""What the page tells programs as JSON, with its description in OpenAPI."""

from aiohttp import web


def routes(_base: str) -> list[web.RouteDef]:
    return []
