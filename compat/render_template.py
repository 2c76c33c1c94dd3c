"""The command lines of older tools; each writes to standard output:

python render_template.py single TEMPLATE PROJECT
python render_template.py cluster TEMPLATE PROJECT [PS WORKERS]
python render_template.py TEMPLATE PROJECT PS WORKERS
python render_template.py TEMPLATE

Each takes --set NAME=VALUE and --values FILE, as often as needed.
"""

import argparse
import sys

MODES = ("single", "cluster")
USAGE = (__doc__ or "").partition(":")[2].strip()


def arguments(given: list[str]) -> list[str]:
    """As `tfyard template` takes them."""
    parser = argparse.ArgumentParser(usage=f"\n{USAGE}", allow_abbrev=False)
    parser.add_argument("words", nargs="*")
    for option in ("--set", "--values"):
        parser.add_argument(option, action="append", default=[])
    found = parser.parse_intermixed_args(given)
    sets = [f"--set={words}" for words in found.set]
    return [*_words(found.words), *sets, *(f"--values={name}" for name in found.values)]


def _words(given: list[str]) -> list[str]:
    mode = given[0] if given and given[0] in MODES else ""
    if (mode == "single" and len(given) == 3) or (mode == "cluster" and len(given) in (3, 5)):
        return given
    if len(given) == 4 and not mode:
        return ["cluster", *given]
    if len(given) == 1 and not mode:
        return ["plain", *given]
    sys.exit(f"usage:\n{USAGE}")


def main() -> None:
    found = arguments(sys.argv[1:])
    try:
        from tfyard.cli.main import main as tfyard
    except ImportError as error:
        sys.exit(f"{error}; first: pip install -r requirements.txt")
    sys.argv = ["tfyard", "template", *found]
    tfyard()


if __name__ == "__main__":
    main()
