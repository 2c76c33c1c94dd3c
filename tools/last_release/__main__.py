"""`python -m tools.last_release`: install it unless it is there."""

import sys

from tfyard.controlplane.binaries import MissingBinaries
from tools import last_release


def main() -> int:
    try:
        python = last_release.install(lambda line: print(line, flush=True))
    except last_release.NoHistory as problem:
        print(f"tests of upgrades will be skipped: {problem}", file=sys.stderr)
        return 0
    except MissingBinaries as problem:
        print(f"tests of upgrades will be skipped: {problem}", file=sys.stderr)
        return problem.exit_code
    print(f"tfyard of {last_release.COMMIT[:12]} in {python.parents[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
