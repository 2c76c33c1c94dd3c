"""The command lines of older tools; each writes to standard output:

python render_template.py single TEMPLATE PROJECT
python render_template.py cluster TEMPLATE PROJECT [PS WORKERS]
python render_template.py TEMPLATE PROJECT PS WORKERS
python render_template.py TEMPLATE
"""

import sys

MODES = ("single", "cluster")


def arguments(given: list[str]) -> list[str]:
    """As `tfyard template` takes them."""
    if (
        given
        and given[0] in MODES
        and len(given) in (3, 5)
        and not (given[0] == "single" and len(given) == 5)
    ):
        return given
    if len(given) == 4 and given[0] not in MODES:
        return ["cluster", *given]
    if len(given) == 1 and given[0] not in MODES and not given[0].startswith("-"):
        return ["plain", *given]
    sys.exit(f"usage:\n{(__doc__ or '').partition(':')[2].strip()}")


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
