"""The recorded session of docs/terminal.md shows commands as they are, and its picture shows what was recorded."""

import html
import re
import shlex

import click
import pytest

from tests.cli.running import ROOT
from tfyard.cli.main import tfyard
from tools import picture, session

RECORDED = session.RECORD.read_text()


def shown(svg: str) -> list[str]:
    """The text of a picture, whatever it looks like."""
    return [html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


def test_its_commands_were_recorded() -> None:
    assert tuple(re.findall(r"^\$ (.*)$", RECORDED, re.MULTILINE)) == session.COMMANDS


@pytest.mark.parametrize("line", session.COMMANDS)
def test_its_commands_and_their_options_exist(line: str) -> None:
    program, name, *args = shlex.split(line.partition(" | ")[0])
    command = tfyard.get_command(click.Context(tfyard), name)
    assert (program, command is not None) == ("tfyard", True)
    assert command is not None
    command.make_context(name, args)


def test_its_picture_is_what_the_tool_makes_of_the_record() -> None:
    assert shown(session.PICTURE.read_text()) == shown(session.draw(RECORDED)), "run: python -m tools.session"
    assert max(map(len, RECORDED.splitlines())) <= picture.WIDTH


def test_the_page_of_the_terminal_shows_it_and_it_names_no_machine() -> None:
    assert "(images/session.svg)" in (ROOT / "docs" / "terminal.md").read_text()
    assert "/tmp/" not in RECORDED
