"""Where `tfyard` and `python -m tfyard` begin."""

import gc
import signal


def main() -> None:
    """While modules are imported, the collector looks through all that is there, again and again, and finds
    nothing: a quarter of a short command's time. `cli.main` turns it on again when the command is known.
    Ctrl-C ends us without a word until there is something to bring to an end; whoever has that says so."""
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tfyard.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
