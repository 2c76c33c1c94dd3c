"""docs/install.md and the chart's page: their commands and their job are valid."""

import re
import shlex

import click
import pytest

from tests.cli.running import ROOT
from tests.helm import Helm
from tests.test_docs import blocks
from tfyard import formats
from tfyard.cli.main import tfyard

PAGE = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
CHART_PAGE = (ROOT / "charts" / "tfyard" / "README.md").read_text(encoding="utf-8")


def lines(program: str) -> list[str]:
    """Command lines of this program, without their comments."""
    shown = "".join(
        block for page in (PAGE, CHART_PAGE) for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    )
    in_table = re.findall(rf"\| `({program} [^`]*)` \|\n", CHART_PAGE)
    in_blocks = re.findall(rf"^ *\$ ({program} .*?)(?: +#.*)?$", shown, re.MULTILINE)
    return sorted({*in_blocks, *in_table})


@pytest.mark.parametrize("line", lines("tfyard"))
def test_tfyard_understands_every_command_line(line: str) -> None:
    command: click.Command | None = tfyard
    args = shlex.split(line)[1:]
    while isinstance(command, click.Group):
        name, *args = args
        command = command.get_command(click.Context(command), name)
    assert command is not None
    assert command.make_context(command.name, args).args == []


@pytest.mark.parametrize("line", lines("helm"))
def test_helm_knows_every_option(helm: Helm, line: str) -> None:
    _, name, *args = shlex.split(line)
    known = set(re.findall(r"--[a-z-]+", helm(name, "--help")))
    assert [arg for arg in args if arg.startswith("--") and arg not in known] == []


def test_the_pages_contain_command_lines() -> None:
    assert len(lines("tfyard")) > 5
    assert len(lines("helm")) > 4


def test_the_first_job_is_valid() -> None:
    (text,) = blocks(PAGE, "yaml")
    (document,) = formats.read(text)
    assert formats.check(document).problems == ()
