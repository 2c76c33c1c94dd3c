"""`tfyard version`: prints the version."""

import platform
import subprocess
from pathlib import Path

import click

import tfyard
from tfyard.cli import output


@click.command("version")
@output.text_or_json
def command(**options: str) -> None:
    """Print the versions of tfyard and Python, and the operating system; for a checkout also its last commit."""
    python, system, commit = platform.python_version(), platform.system(), _commit()
    if options["output"] == "json":
        facts = {"tfyard": tfyard.__version__, "commit": commit, "python": python, "system": system}
        output.print_json(facts)
    else:
        at = f" at {commit}" if commit else ""
        click.echo(f"tfyard {tfyard.__version__}{at} (Python {python}, {system})")


def _commit() -> str:
    """Hash and date of the checkout that this is run from; empty for an installed package."""
    root = Path(tfyard.__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "log", "-1", "--format=%h, %cs"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:  # no git on this machine
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
