"""The pages say what is: every word, every command, every option, and examples that run."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.cli.running import ROOT
from tfyard import formats
from tfyard.cli.main import COMMANDS, tfyard
from tfyard.formats.tfjob.versions import VERSIONS
from tools import jobfile_docs

DOCS = ROOT / "docs"
CLI = (DOCS / "cli.md").read_text(encoding="utf-8")
JOBFILE = (DOCS / "jobfile.md").read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def section(command: str) -> str:
    return CLI.split(f"\n## {command}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize(("page", "tables"), list(zip(jobfile_docs.PAGES, (8, 1), strict=True)))
def test_the_tables_of_words_are_those_of_the_declarations(page: Path, tables: int) -> None:
    text = page.read_text(encoding="utf-8")
    assert jobfile_docs.filled(text) == text, "run: python tools/jobfile_docs.py"
    assert text.count("<!-- end -->") == tables


@pytest.mark.parametrize("text", blocks(JOBFILE, "yaml"))
def test_every_job_file_on_its_page_is_valid(text: str) -> None:
    (found,) = formats.read(text)
    assert formats.check(found).problems == ()


def test_the_page_begins_with_five_lines() -> None:
    assert blocks(JOBFILE, "yaml")[0].count("\n") == 5


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_every_option_is_documented(name: str) -> None:
    command = tfyard.get_command(click.Context(tfyard), name)
    assert command is not None
    options = [option for param in command.params for option in param.opts if option.startswith("-")]
    assert [option for option in options if f"`{option}" not in section(name)] == []
    assert "```console" in section(name)


def test_options_of_all_commands_are_documented() -> None:
    options = [option for param in tfyard.params for option in param.opts]
    assert [option for option in ("-h", "--help", *options) if f"`{option}`" not in CLI] == []


def commands(command: click.Command) -> Iterator[click.Command]:
    yield command
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        yield from commands(each)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "version"])
def test_tfyard_understands_every_example_of_its_help(name: str) -> None:
    found = tfyard.get_command(click.Context(tfyard), name)
    assert found is not None
    text = "\n".join(each.help or "" for each in commands(found)).replace("$$", "1")
    lines = re.findall(rf"^ *(?:.* \| )?tfyard ({name}\b.*)$", text, re.MULTILINE)
    assert lines, "its help has no example"
    for line in lines:
        command, (word, *args) = found, shlex.split(re.split(r" {2,}| #| [|&>]", line)[0])
        while isinstance(command, click.Group) and args:
            word, *args = args if args[0] in command.commands else ("open", *args)  # as `tfyard notebook JOB`
            command = command.commands[word]
        assert command.make_context(word, args).args == [], line


def examples() -> list[tuple[str, str]]:
    """(command line, what it prints) for every `$ …` of the page."""
    found = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks(CLI, "console")), re.MULTILINE)
    return [(line, printed) for line, printed in found]


def test_every_documented_command_line_prints_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "tfyard").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tfyard "$@"\n')
    (tmp_path / "tfyard").chmod(0o755)
    here = tmp_path / "here"
    here.mkdir()
    for line, printed in examples():
        command = ["/bin/sh", "-c", f'PATH="{tmp_path}:$PATH"; {line}']
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
        pattern = re.escape(printed).replace(r"\.\.\.", r"[\s\S]*")
        assert re.fullmatch(pattern, done.stdout + done.stderr), f"$ {line}\n{done.stdout}{done.stderr}"
    assert len(examples()) > 10


STORY = {
    ".tfyardignore": "examples\n",  # a link out of the folder
    "train.py": "print('Step: 1, loss: 1.0')",
    "job.yaml": """
name: cancer
image: example/cancer:1
code: .
run: python train.py
worker: {count: 2, gpu: 1}
volumes: {data: {claim: data, at: /data}}
tensorboard: /data/logs
success: all-workers
""",
    "my-config.yaml": (ROOT / "docs" / "render.md").read_text().partition("```yaml\n")[2].partition("```")[0],
    "image-only.yaml": "name: mnist\nimage: example/mnist:1\nworker: 1\n",
    "old-tfjob.yaml": """
apiVersion: kubeflow.org/v1beta1
kind: TFJob
metadata: {name: old}
spec:
  tfReplicaSpecs:
    MASTER: {template: {spec: {containers: [{name: tensorflow, image: example/old:1, command: [python]}]}}}
""",
}
TOLD = [
    re.split(r" +# ", line)[0]
    for page in (ROOT / "README.md", DOCS / "run.md")
    for block in blocks(page.read_text(encoding="utf-8"), "console")
    for line in re.findall(r"^\$ (tfyard .*)$", block, re.MULTILINE)
]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the commands of README.md and docs/run.md make sense: one run lies behind."""
    folder = tmp_path_factory.mktemp("story")
    for name, text in STORY.items():
        (folder / name).write_text(text)
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "data").mkdir()
    subprocess.run([sys.executable, "-m", "tfyard", "run", "job.yaml", "-q"], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("line", TOLD)
def test_every_command_line_of_the_readme_and_of_the_page_on_running_works(
    story: Path, line: str, tmp_path: Path
) -> None:
    """What runs a job or needs a cluster is asked for its plan only: other tests run the rest for real."""
    words = shlex.split(line.partition(" | ")[0].replace("/my/data", str(story / "data")))[1:]
    if words[0] == "run":
        words.insert(words.index("--") if "--" in words else len(words), "--dry-run")
    elif words[0] == "install":
        words.append("--dry-run=client")
    elif words[0] == "submit":
        words = [*(word for word in words if word != "--follow"), "--dry-run=client"]
    elif words[0] == "sweep":
        words[0] = "validate"
    elif words[0] in ("doctor", "cp", "stop", "rerun", "dashboard") or "--trials" in words:
        words.append("--help")
    elif words[:2] == ["runs", "rm"]:  # the other command lines need the run
        story = shutil.copytree(story, tmp_path / "story", symlinks=True)
    command, no_cluster = [sys.executable, "-m", "tfyard", *words], {**os.environ, "HOME": str(story)}
    no_cluster.pop("KUBECONFIG", None)
    done = subprocess.run(command, cwd=story, capture_output=True, text=True, check=False, env=no_cluster)
    assert done.returncode == 0, done.stderr
    assert done.stdout


TERMINAL = [
    line
    for page in ("terminal.md", "submit.md")
    for block in blocks((DOCS / page).read_text(encoding="utf-8"), "console")
    for line in re.findall(r"^\$ (tfyard .*?)(?: > .*)?$", block, re.MULTILINE)
]


@pytest.mark.parametrize("line", TERMINAL)
def test_tfyard_understands_every_command_line_of_the_pages_on_jobs_of_a_cluster(line: str) -> None:
    """What they print is tested with a cluster, in tests/cli."""
    name, *args = shlex.split(line)[1:]
    command = tfyard.get_command(click.Context(tfyard), name)
    assert command is not None
    assert command.make_context(name, args).args == []


def test_the_page_of_versions_names_each_with_its_defaults() -> None:
    page = (DOCS / "versions.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in page.splitlines() if re.match(r"\| `\w+\.org/", line)}
    assert set(rows) == set(VERSIONS)
    for version, defaults in VERSIONS.items():
        assert f"| {defaults.clean} | `{defaults.dialect}` |" in rows[version]


def test_pages_link_to_pages_that_are_there() -> None:
    for page in DOCS.glob("*.md"):
        for link in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
