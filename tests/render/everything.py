"""Every object that `render` makes of every example, for checks by the schema and by a real server."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .calling import COMPAT, HERE, JOBS, ROOT, Manifest, documents, tfyard

FORMS = (
    ("--as", "tfjob"),
    ("--as", "tfjob", "--nfs-claims", "--create-namespace", "--secret", f"registry/token={HERE / 'pw.txt'}"),
    ("--as", "plain"),
    ("--as", "plain", "--services", "per-replica", "--domain", "cluster.local"),
    ("--as", "legacy"),
)

NO_JOBS = ("no TFJob, no tfyard job file", "is a sweep file")
"""Files of other kinds are refused with these words."""


def examples() -> list[Path]:
    """The example files of these tests and of the project."""
    paths = [*JOBS.glob("*.yaml"), *(ROOT / "examples").glob("**/*.yaml")]
    return sorted(path for path in paths if ".tfyard" not in path.parts)


@cache
def rendered() -> dict[str, list[Manifest]]:
    """Arguments of the command -> the objects that it rendered."""
    return dict(_jobs()) | dict(_others())


def _jobs() -> Iterator[tuple[str, list[Manifest]]]:
    for path in examples():
        for form in FORMS:
            done = tfyard("render", path, *form)
            if not any(other in done.err for other in NO_JOBS):
                yield f"{path.name} {' '.join(form[1:3])}", done.objects


def _others() -> Iterator[tuple[str, list[Manifest]]]:
    yield "seed 002", tfyard("render", COMPAT / "templates" / "config.yaml", "--create-namespace").objects
    for path in sorted((HERE / "configs").glob("*.yaml")):
        yield f"config {path.stem}", tfyard("render", path).objects
    single = tfyard("template", "single", COMPAT / "tf_single_template.yaml.jinja", "boc-web-predict")
    yield "seed 000 single", documents(single.out)
    cluster = tfyard("template", "cluster", COMPAT / "tf_cluster_template.yaml.jinja", "boc", "2", "3")
    yield "seed 000 cluster", documents(cluster.out)
    shared = tfyard("template", "plain", COMPAT / "tf_shared_template.yaml.jinja")
    yield "seed 000 shared", documents(shared.out)
    for path in (JOBS / "cancer.yaml", JOBS / "mnist.yaml"):
        notebook = tfyard("notebook", "render", path, "--password-file", HERE / "pw.txt")
        yield f"notebook {path.stem}", notebook.objects
