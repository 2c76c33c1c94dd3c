"""Jupyter for a job, shown in the browser."""

import secrets
import sys

import click

from tfyard.cli import pod_pages, target
from tfyard.cli.web_session import Show
from tfyard.cli.web_session import show as show_pages
from tfyard.kube import Client
from tfyard.remote import notebook
from tfyard.remote.forwarding import Port
from tfyard.render.notebook import PORT


async def show(found: target.ClusterJob, image: str, password: str, user: int | None, wanted: Show) -> None:
    found.client.close()
    title, port = f"Jupyter for {found.found.name}", Port(PORT, wanted.port)
    async with Client(found.client.access) as client:
        choice = await notebook.beside(client, found.found)
        if choice is not None:
            target.say("its password is the one that it was rendered with")
            async with pod_pages.beside(client, choice, title, port) as page:
                await show_pages([page], wanted)
            return
        chosen = password or secrets.token_urlsafe(12)
        helper = await notebook.helper(client, found.found, image, chosen, user)
        async with pod_pages.in_helper(client, helper, title, port) as page:
            if not password:
                click.echo(f"password: {chosen}")
                sys.stdout.flush()
            await show_pages([page], wanted)
