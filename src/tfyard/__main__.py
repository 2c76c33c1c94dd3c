"""The entry point of `tfyard` and `python -m tfyard`."""

import gc
import signal


def main() -> None:
    """The garbage collector is off while modules are imported: it would find nothing, and take a quarter of a
    short command's time. `cli.main` turns it on when the command is imported. Ctrl-C ends us silently; a command
    that has something to stop handles the signal itself."""
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tfyard.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
