"""Terminal output as an SVG picture for the README.

tmux capture-pane -e -p -t SESSION | python tools/picture.py "tfyard run job.yaml" > docs/run.svg
"""

import io
import re
import sys

from rich.console import Console
from rich.text import Text


def main() -> None:
    text = Text.from_ansi(sys.stdin.read().rstrip())
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
    console.print(text, soft_wrap=False, overflow="crop", no_wrap=True)
    svg = console.export_svg(title=sys.argv[1])
    print(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))  # the viewer has fonts


if __name__ == "__main__":
    main()
