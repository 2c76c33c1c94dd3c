"""`tfyard version`: prints the version."""

import platform
import subprocess
from pathlib import Path

import click

import tfyard


@click.command("version")
def command() -> None:
    """Print the versions of tfyard and Python, and the operating system; for a checkout also its last commit."""
    where = f"Python {platform.python_version()}, {platform.system()}"
    click.echo(f"tfyard {tfyard.__version__}{_commit()} ({where})")


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
    return f" at {done.stdout.strip()}" if done.returncode == 0 else ""
