"""Draws terminal output as an SVG picture for the README.

tmux capture-pane -e -p -t SESSION | python tools/picture.py "tfyard run job.yaml" > docs/run.svg
"""

import io
import re
import sys

from rich.console import Console
from rich.text import Text

WIDTH = 100


def draw(output: str, title: str) -> str:
    """An SVG of terminal output, which may have colours."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(output.rstrip()), soft_wrap=False, overflow="crop", no_wrap=True)
    svg = console.export_svg(title=title)
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # viewers have fonts of their own


if __name__ == "__main__":
    print(draw(sys.stdin.read(), sys.argv[1]))
