"""The page documents the commands: it has every option of theirs, and its commands run."""

import re
from pathlib import Path

import click
import pytest

from tfyard.cli.notebook import render as notebook
from tfyard.cli.render import command as render
from tfyard.cli.template import command as template

from .calling import ROOT

PAGE = (ROOT / "docs" / "render.md").read_text()


@pytest.mark.parametrize("command", [render, notebook])
def test_the_page_names_the_options_that_change_what_is_rendered(command: click.Command) -> None:
    plain = {"--output", "--namespace", "--image", "--name"}
    options = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    assert {name for name in options - plain if name not in PAGE} == set()


def test_the_page_names_every_subcommand_for_templates() -> None:
    assert isinstance(template, click.Group)
    assert [name for name in template.commands if f"tfyard template {name}" not in PAGE] == []


def test_the_page_names_only_files_that_exist() -> None:
    for name in re.findall(r"`(compat/[\w./]+)`", PAGE):
        assert Path(ROOT, name).exists(), name
