"""The seeds' own examples and their renderings, byte for byte. To accept a change, after reading it:

python -m tests.render.golden
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from .calling import COMPAT, GOLDEN, HERE, JOBS, tfyard

SEED_003 = HERE / "seeds" / "003"
FIRST = ("ps.yaml", "worker.yaml", "ps-srv.yaml", "worker-srv.yaml")
SECOND = ("work_ps.yaml",)


def cases() -> dict[str, Callable[[], str]]:
    return {
        "seed-000-single.yaml": lambda: _template("single", "boc-web-predict"),
        "seed-000-cluster.yaml": lambda: _template("cluster", "boc-web-predict", "1", "2"),
        "seed-000-shared.yaml": lambda: _said("template", "plain", COMPAT / "tf_shared_template.yaml.jinja"),
        "seed-002-config.yaml": lambda: _render(COMPAT / "templates" / "config.yaml"),
        "seed-002-later.yaml": lambda: _render(HERE / "configs" / "numbers.yaml"),
        "seed-003-curl-job.yaml": lambda: _converted(FIRST),
        "seed-003-nfs-job.yaml": lambda: _converted(SECOND),
        "seed-003-nfs-legacy.yaml": lambda: _converted(SECOND, "--as", "legacy"),
        "seed-003-curl-plain.yaml": lambda: _converted(FIRST, "--as", "plain"),
        "cancer-tfjob.yaml": lambda: _render(JOBS / "cancer.yaml"),
        "cancer-plain.yaml": lambda: _render(JOBS / "cancer.yaml", "--as", "plain", "--explain"),
        "mnist-tfjob.yaml": lambda: _render(JOBS / "mnist.yaml", "--nfs-claims", "--explain"),
        "mnist-plain.yaml": lambda: _render(JOBS / "mnist.yaml", "--as", "plain"),
        "workers-plain.yaml": lambda: _render(JOBS / "workers.yaml", "--as", "plain"),
        "cancer-notebook.yaml": lambda: _said("notebook", "render", JOBS / "cancer.yaml", *_PASSWORD),
    }


_PASSWORD = ("--password-file", HERE / "pw.txt", "--explain")


def _said(*arguments: str | Path) -> str:
    done = tfyard(*arguments)
    assert done.code == 0, done.err
    return done.out


def _render(path: Path, *options: str) -> str:
    return _said("render", path, *options)


def _template(mode: str, *arguments: str) -> str:
    return _said("template", mode, COMPAT / f"tf_{mode}_template.yaml.jinja", *arguments)


def _converted(names: tuple[str, ...], *options: str) -> str:
    """The seed's files without the line that is not YAML; with options, also rendered."""
    with TemporaryDirectory() as folder:
        for name in names:
            lines = (SEED_003 / name).read_text().splitlines(keepends=True)
            Path(folder, name).write_text("".join(line for line in lines if "nodeName: *" not in line))
        text = _said("convert", *(Path(folder, name) for name in names), "--to", "jobfile")
        Path(folder, "job.yaml").write_text(text)
        return _render(Path(folder, "job.yaml"), *options) if options else text


def _written() -> Iterator[str]:
    for name, make in cases().items():
        (GOLDEN / name).write_text(make())
        yield name


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    print("\n".join(_written()))
