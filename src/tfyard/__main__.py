"""The entry point of `tfyard` and `python -m tfyard`."""

import atexit
import gc
import os
import signal
import sys


def main(program: str = "tfyard") -> None:
    """The garbage collector is off while modules are imported: it would find nothing, and take a quarter of a
    short command's time. `cli.main` turns it on when the command is imported. Ctrl-C ends us silently; a command
    that has something to stop handles the signal itself."""
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tfyard.cli.main import main as run

    try:
        run(program)
    except SystemExit as end:
        if isinstance(end.code, int | None) and _is_plain():
            _leave(end.code or 0)
        raise


def kubectl_plugin() -> None:
    """`kubectl tfyard ...`: kubectl starts the program `kubectl-tfyard`."""
    main("kubectl tfyard")


def _is_plain() -> bool:
    """Nobody waits for the interpreter's own end: no thread, no profiler, no debugger."""
    threading = sys.modules.get("threading")
    is_alone = threading is None or threading.active_count() == 1
    return is_alone and sys.getprofile() is None and sys.gettrace() is None


def _leave(code: int) -> None:
    """Without taking down every module, which takes as long as a small task."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            return  # Python reports it
    os._exit(code)


if __name__ == "__main__":
    main()
