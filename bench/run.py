"""Measures what `tfyard run` costs: one trivial task, many tasks beside a shell loop that starts the same
processes, and a flood of output.

Only ratios within one run matter, because other work on the machine changes the seconds.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TASKS = 32
ROUNDS = 3
FLOOD = 100 * 1000 * 1000
TRIVIAL, TRIVIAL_ROUNDS = 15, 20
"""Maximum ratio to bare Python, and the number of rounds, in turns: a busy machine slows both alike."""
FILES, BESIDE_START = 2000, 30
"""Files of a git tree, and the milliseconds that its record may cost until the first task runs."""

FLOOD_SCRIPT = f"""
import os
block = (b"x" * 99 + bytes([10])) * 1000
for _ in range({FLOOD} // len(block)): os.write(1, block)
"""


def timed(command: list[str], folder: Path) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def tfyard(*args: str) -> list[str]:
    return [str(Path(sys.executable).parent / "tfyard"), *args]


def trivial(folder: Path) -> None:
    (folder / "task.py").write_text("pass\n")
    run = tfyard("run", "task.py")
    timed(run, folder)  # also warms the caches
    bare, ours = float("inf"), float("inf")
    for _ in range(TRIVIAL_ROUNDS):
        bare = min(bare, timed([sys.executable, "task.py"], folder))
        shutil.rmtree(folder / ".tfyard")
        ours = min(ours, timed(run, folder))
    verdict = "ok" if ours <= TRIVIAL * bare else "MISSED"
    print(f"one trivial task: python {bare * 1000:.0f} ms, tfyard {ours * 1000:.0f} ms")
    print(f"  ratio {ours / bare:.1f} (target {TRIVIAL}) {verdict}")


def recording(folder: Path) -> None:
    """What reading git and packages costs until the first task runs: in a repository with changes, and without."""
    script = "import time; print(time.time(), file=open('began', 'w'))\n"
    plain, tree = folder / "plain", folder / "tree"
    for each in (plain, tree):
        each.mkdir()
        (each / "task.py").write_text(script)
    for number in range(FILES):
        (tree / f"{number}.txt").write_text(f"{number}\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example"]
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "first"]):
        subprocess.run([*git, *words], cwd=tree, check=True)
    for number in range(0, FILES, 10):
        (tree / f"{number}.txt").write_text("changed\n")
    least = {plain: float("inf"), tree: float("inf")}
    for _ in range(TRIVIAL_ROUNDS):
        for each in least:
            least[each] = min(least[each], _until_it_began(each))
    more = (least[tree] - least[plain]) * 1000
    verdict = "ok" if more <= BESIDE_START else "MISSED"
    print(f"until the first task runs: {least[plain] * 1000:.0f} ms, in a git tree {more:+.0f} ms")
    print(f"  (target +{BESIDE_START} ms) {verdict}")


def _until_it_began(folder: Path) -> float:
    start = time.time()
    timed(tfyard("run", "task.py"), folder)
    return float((folder / "began").read_text()) - start


def overhead(folder: Path) -> None:
    (folder / "task.py").write_text("pass\n")
    loop = f"for i in $(seq {TASKS}); do {sys.executable} task.py & done; wait"
    run = tfyard("run", "task.py", "--worker", str(TASKS), "--save", "job.yaml")
    timed(run, folder)  # also warms the caches
    with (folder / "job.yaml").open("a") as file:
        file.write("success: all-workers\n")
    shell = min(timed(["sh", "-c", loop], folder) for _ in range(ROUNDS))
    ours = min(timed(tfyard("run", "job.yaml"), folder) for _ in range(ROUNDS))
    allowed = 1.3 * shell + 0.3
    print(
        f"{TASKS} tasks: shell loop {shell:.2f} s, tfyard {ours:.2f} s; allowed {allowed:.2f} s (1.3x + 0.3 s)"
    )
    print(f"  ratio to the allowed time: {ours / allowed:.2f}")


def flood(folder: Path) -> None:
    (folder / "flood.py").write_text(FLOOD_SCRIPT)
    bare = min(timed(["sh", "-c", f"{sys.executable} flood.py > bare.log"], folder) for _ in range(ROUNDS))
    ours = min(timed(tfyard("run", "flood.py"), folder) for _ in range(ROUNDS))
    print(f"{FLOOD / 1e6:.0f} MB of output: to a file {bare:.2f} s, tfyard {ours:.2f} s")
    print(
        f"  {FLOOD / 1e6 / ours:.0f} MB/s, every line printed, start and end included; ratio {ours / bare:.2f}"
    )
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
    print(f"  most memory of any process: {largest:.0f} MB")


def main() -> None:
    for name in ("TF_CONFIG", "PYTHONDONTWRITEBYTECODE"):  # compiled once, as any installed program is
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as name:
        trivial(Path(name))
        recording(Path(name))
        overhead(Path(name))
        flood(Path(name))


if __name__ == "__main__":
    main()
