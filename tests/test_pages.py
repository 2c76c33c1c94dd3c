"""Every command of every page is run by a test that the page names, or the page says why it is not. The site of
all pages is built without a warning.

A comment at the top of a page is about all of its blocks, one above a block about that block:

    <!-- run by tests/dev/test_pages.py -->
    <!-- not run: needs a registry -->
"""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest
import yaml

from tests.cli.running import ROOT
from tests.test_docs import DOCS
from tfyard import formats
from tfyard.cli.main import tfyard
from tools import python_reference

PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
ALSO = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(ROOT.glob("[ce]*/*/README.md"))]
"""Pages outside of the site."""
PROGRAMS = {"console", "python", "sh", "bash"}
MARK = re.compile(r"<!-- (run by|not run:) (.+?) -->")
BLOCK = re.compile(
    r"^(?:(?P<mark><!-- (?:run by|not run:) [^\n]+ -->)\n)?"
    r"(?P<indent> *)```(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```",
    re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    kind: str
    text: str
    mark: str
    """The comment that is about it."""


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    top = next((line for line in text.splitlines()[:4] if MARK.fullmatch(line)), "")
    for found in BLOCK.finditer(text):
        yield Block(found["kind"], found["text"], found["mark"] or top)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def lines(page: Path) -> list[str]:
    """Command lines of tfyard, each alone: without comments, pipes and what goes into a file."""
    shown = "".join(block.text for block in blocks(page) if block.kind == "console")
    told = re.findall(r"^ *\$ (.*)$", shown, re.MULTILINE)
    parts = [part.strip() for line in told for part in re.split(r" \| | && | > |; | +#", line)]
    return [part for part in parts if re.match(r"tfyard \w", part)]


@pytest.mark.parametrize("page", [*PAGES, *ALSO], ids=name)
def test_commands_stand_in_blocks_that_say_so(page: Path) -> None:
    """Else nobody would look whether they are run."""
    text = page.read_text(encoding="utf-8")
    assert [block.text for block in blocks(page) if not block.kind] == [], "say console, or text"
    beside = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.DOTALL | re.MULTILINE)
    programs = "tfyard|kubectl|helm|make|pip|python|sh"
    assert re.findall(rf"^    (?:\$ )?(?:{programs}) .*", beside, re.MULTILINE) == []


@pytest.mark.parametrize("page", [*PAGES, *ALSO], ids=name)
def test_each_block_of_commands_is_run_by_a_test_or_says_why_not(page: Path) -> None:
    for block in blocks(page):
        if block.kind not in PROGRAMS:
            continue
        found = MARK.fullmatch(block.mark)
        assert found, f"nothing is said of running:\n{block.text}"
        if found[1] == "not run:":
            assert len(found[2].split()) > 3, "a reason is a sentence"
        for test in re.findall(r"tests/\S+\.py", found[2]):
            assert (ROOT / test).exists(), test
            assert found[1] == "not run:" or page.name in (ROOT / test).read_text(), (
                f"{test} does not read it"
            )


def places(page: Path) -> set[str]:
    """Anchors of a page: of its headings, as GitHub and the site make them, and those that it declares."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = [
        re.sub(r"[^\w\- ]", "", found.lower()) for found in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    ]
    ours = {heading.replace(" ", "-") for heading in headings}
    return {*ours, *(re.sub("-+", "-", each) for each in ours), *re.findall(r'<a id="([^"]+)"', text)}


@pytest.mark.parametrize("page", sorted({*PAGES, *ROOT.glob("*.md"), *ROOT.glob("[ce]*/*/*.md")}), ids=name)
def test_each_link_to_a_file_of_ours_leads_to_it_and_to_the_place_in_it(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\((?![a-z]+:)([^)\s]+)\)", text):
        path, _, place = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not place or place in places(target), link


def test_the_menu_of_the_site_has_every_page() -> None:
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert set(re.findall(r"[\w/-]+\.md", str(menu))) == {
        str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")
    }


@pytest.mark.parametrize("page", [*PAGES, *ALSO], ids=name)
def test_tfyard_understands_every_command_line(page: Path) -> None:
    for line in lines(page):
        _, *args = shlex.split(line.replace("$PWD", "/here"))
        command, context = click.Command(""), click.Context(tfyard)
        group: click.Group | None = tfyard
        while group is not None and args and (found := group.get_command(context, args[0])):
            (word, *args), command = args, found
            group = found if isinstance(found, click.Group) else None
        assert command.name, line
        if group is None:  # `tfyard notebook JOB` is a group, too: test_docs.py knows it
            assert command.make_context(word, args).args == [], line


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name == "guides"], ids=name)
def test_each_job_file_of_a_guide_is_valid(page: Path) -> None:
    for block in blocks(page):
        if block.kind == "yaml" and "apiVersion" not in block.text:
            (found,) = formats.read(block.text)
            assert formats.check(found).problems == (), block.text


def test_the_readme_is_two_screens_and_the_first_one_has_a_picture_and_the_commands_to_begin_with() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(text) <= 95
    first = "\n".join(text[:25])
    assert "for linux" in first.lower()
    for part in ("$ make demo ", "$ make test ", "![", "## Install"):
        assert part in first, part


def test_the_readme_explains_each_extra_that_users_install() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("| extra |")[2].partition("\n\n")[0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ours = {"control-plane", "control-plane-build", "docs", "develop"}
    assert (
        set(re.findall(r"^\| `([\w-]+)`", table, re.MULTILINE)) == {*project["optional-dependencies"]} - ours
    )


def test_the_reference_says_what_docstrings_say() -> None:
    assert python_reference.PAGE.read_text(encoding="utf-8") == python_reference.page(), (
        "run: python -m tools.python_reference"
    )


@pytest.mark.processes
def test_the_site_has_every_page_can_be_searched_and_gets_nothing_from_elsewhere(tmp_path: Path) -> None:
    program = shutil.which("zensical", path=str(Path(sys.executable).parent))
    assert program, "it is one of the packages that `make install` brings"
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    done = subprocess.run(
        [program, "build", "--strict"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    site = tmp_path / yaml.safe_load((ROOT / "mkdocs.yml").read_text())["site_dir"]
    made = {page.relative_to(site).with_suffix(".md") for page in site.rglob("*.html")} - {Path("404.md")}
    assert made == {page.relative_to(DOCS) for page in DOCS.rglob("*.md")}
    assert "TfyardRefusedStatuses" in (site / "search.json").read_text(), "the search knows the run book"
    html = "\n".join(page.read_text(encoding="utf-8") for page in site.rglob("*.html"))
    styles = "\n".join(style.read_text(encoding="utf-8") for style in site.rglob("*.css"))
    assert (
        re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*(?:src|href)=\"?(?:https?:)?//[^>]*>", html)
        == []
    )
    assert re.findall(r"(?:@import|url\()[\s\"']*(?:https?:)?//[^)\"']*", styles) == []
    assert not re.search(r'class="[^"]*\b(?:mermaid|pyodide|arithmatex)\b', html), "these would be fetched"
