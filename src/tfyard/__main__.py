"""The entry point of `tfyard` and `python -m tfyard`."""

import gc
import signal


def main(program: str = "tfyard") -> None:
    """The garbage collector is off while modules are imported: it frees nothing there and takes a quarter of a
    short command's time. `cli.main` turns it on when the command is imported. Ctrl-C ends the process silently; a
    command that has something to stop handles the signal itself."""
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tfyard.cli.main import main as run  # with the collector off

    run(program)


def kubectl_plugin() -> None:
    """`kubectl tfyard ...`: kubectl starts the program `kubectl-tfyard`."""
    main("kubectl tfyard")


if __name__ == "__main__":
    main()
