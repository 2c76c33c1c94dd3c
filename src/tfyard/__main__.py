"""Where `tfyard` and `python -m tfyard` begin."""

import gc


def main() -> None:
    """While modules are imported, the collector looks through all that is there, again and again, and finds
    nothing: a quarter of a short command's time. `cli.main` turns it on again when the command is known."""
    gc.disable()
    from tfyard.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
