"""Files by the names that users give: a path, or `-` for standard input. This module prints nothing."""

import os  # not pathlib: it takes 3 ms to import, and its `is_dir` raises an error for a name that is too long
import sys
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tfyard import formats
from tfyard.errors import Invalid, Usage
from tfyard.formats.pods import images
from tfyard.formats.yaml.source import MAX_INPUT, locate
from tfyard.model import Code, Job, Problem
from tfyard.model.names import DEFAULT_IMAGE

if TYPE_CHECKING:
    from pathlib import Path

    from tfyard.formats.workloads.load import Converted


def read_bytes(name: str) -> bytes:
    """The whole file; raises Invalid if it has more than MAX_INPUT bytes, before it fills the memory."""
    try:
        if name == "-":
            return _read_stdin()
        with open(name, "rb") as file:
            size = os.fstat(file.fileno()).st_size  # 0 for a pipe or a device
            return _limited(b"" if size > MAX_INPUT else file.read(MAX_INPUT + 1), name, size)
    except FileNotFoundError:
        raise Usage(f"{name}: file not found") from None
    except IsADirectoryError:
        raise Usage(f"{name} is a folder; name the file in it") from None
    except OSError as error:
        raise Usage(f"{name}: {error.strerror}") from None


def _read_stdin() -> bytes:
    if sys.stdin is None:  # closed, by `<&-`
        raise Usage("-: standard input is closed")
    return _limited(sys.stdin.buffer.read(MAX_INPUT + 1), "-", 0)


def _limited(data: bytes, name: str, size: int) -> bytes:
    """The data, unless there is too much. `size`: of the file, if it is known."""
    if max(len(data), size) <= MAX_INPUT:
        return data
    has = f"{size:,}" if size > MAX_INPUT else "more"
    text = f"the input has {has} bytes; at most {MAX_INPUT:,} are allowed"
    raise Invalid([Problem((), text, "split the file")], (), display_name(name))


def parse(data: bytes, name: str) -> list[formats.Document]:
    """All documents of a file; the items of a List count as documents."""
    shown = display_name(name)
    try:
        return [part for document in formats.read(data, shown) for part in formats.split(document)]
    except Invalid as error:
        raise Invalid(error.problems, formats.split_lines(data), shown) from None


def read_documents(name: str) -> list[formats.Document]:
    return parse(read_bytes(name), name)


def load(
    document: formats.Document, name: str | None = None, *, uses_images: bool = True
) -> tuple[Job, tuple[Problem, ...]]:
    """The job and the warnings about it; raises Invalid with every problem if one is an error. `name`: the file,
    if its folder of code must exist. Where images are not used, an invalid one is only a warning, and a job file
    needs none."""
    if not uses_images:
        document = _with_image(document)
    checked = formats.check(document) if name is None else check(document, name)
    if not uses_images:
        checked = replace(checked, problems=images.as_warnings(checked.problems))
    if checked.errors or checked.job is None:
        raise Invalid(checked.problems, document, document.name)
    return checked.job, checked.problems


def _with_image(document: formats.Document) -> formats.Document:
    """The document; a job file that names no image has the default one."""
    if not formats.is_job_file(document.data) or document.data.get("image") is not None:
        return document
    whole = document.part(())
    whole.data = {**document.data, "image": DEFAULT_IMAGE}
    return whole


def has_only_workloads(documents: list[formats.Document]) -> bool:
    """Whether there are workloads and no job. Workloads beside a job belong to it, such as its TensorBoard."""
    if any(formats.is_job(document.data) for document in documents):
        return False
    from tfyard.formats.workloads import kinds  # 1 ms, and most files have a job

    return any(kinds.is_known(document.data) for document in documents)


def load_workloads(documents: list[formats.Document], name: str, *, uses_images: bool) -> "Converted":
    """The one job of the workloads in a file; raises Invalid with every problem of every document."""
    from tfyard.formats.workloads.load import load as load_all  # 13 ms, and most files have a job

    jobs = load_all(documents, uses_images=uses_images)
    problems = [problem for converted in jobs for _, problem in converted.problems]
    if any(problem.severity == "error" for problem in problems):
        raise Invalid(problems, documents[0], display_name(name))
    if len(jobs) != 1:
        has = f"{len(jobs)} jobs" if jobs else "no workload that trains"
        raise Usage(f"{display_name(name)} has {has}; give a file with one job")
    return jobs[0]


def check(document: formats.Document, name: str) -> formats.Checked:
    """The checked document, including whether the folder of its code, relative to the file, exists and has the
    requirements file."""
    checked = formats.check(document)
    code = checked.job.code if checked.job else None
    if code is None or code.kind != "folder":
        return checked
    missing = _missing(document, code, os.path.join(folder_of(name), code.source))
    return replace(checked, problems=locate((*checked.problems, missing), document)) if missing else checked


def _missing(document: formats.Document, code: Code, folder: str) -> Problem | None:
    if not os.path.isdir(folder):
        written = document.data["code"]
        path = ("code", "from" if "from" in written else "path") if isinstance(written, dict) else ("code",)
        is_there = os.path.exists(folder)
        fix = "name the folder that it is in" if is_there else "paths are relative to the job file"
        return Problem(path, f"{folder} is not a folder", fix, code.source)
    file = os.path.join(folder, code.requirements)
    if code.requirements and not os.path.isfile(file):
        return Problem(
            ("requirements",), f"{file} is not a file", "its path begins in the folder of the code"
        )
    return None


def folder_of(name: str) -> str:
    """The folder of a file: relative paths in the file start there."""
    return "." if name == "-" else os.path.dirname(name) or "."


def beside(name: str, path: str) -> str:
    """A path that is relative to the folder of a file."""
    return os.path.join(os.path.dirname(name), path)


def write_text(name: str, text: str) -> None:
    """Write a file at once: a reader never sees half of it, and a failure leaves the old one."""
    from pathlib import Path  # 3 ms, and most commands write nothing

    path = Path(name)
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")  # a pipe, or /dev/stdout
        else:
            _write_whole(path.resolve(), text)
    except OSError as error:
        raise Usage(f"{name}: {error.strerror}") from None


def _write_whole(path: "Path", text: str) -> None:
    draft = path.with_name(f".{path.name}.new")
    try:
        draft.write_text(text, encoding="utf-8", newline="\n")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def display_name(name: str) -> str:
    """A name as text that can be shown: the name of a file need not be valid UTF-8."""
    return "<stdin>" if name == "-" else name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class SweepGiven(Usage):
    """The file is a sweep file, where a job was expected. Commands that can run one catch this."""

    def __init__(self, document: formats.Document, name: str) -> None:
        job, shown = document.data.get("job"), display_name(name)
        its_job = f"its job, {job}" if isinstance(job, str) and job.isprintable() else "its job"
        super().__init__(
            f"{shown} is a sweep file: give the file of {its_job}; `tfyard sweep {shown}` runs it"
        )
        self.document, self.file = document, name


def refuse_sweep(documents: list[formats.Document], name: str) -> None:
    """Raises SweepGiven if it is a sweep file."""
    require_alone(documents, name)
    if documents and formats.is_sweep(documents[0].data):
        raise SweepGiven(documents[0], name)


def require_alone(documents: list[formats.Document], name: str) -> None:
    """Raises Invalid if a sweep is not alone in its file: which of them is run would be a guess."""
    if len(documents) > 1 and any(formats.is_sweep(document.data) for document in documents):
        text = f"the file has {len(documents)} documents, and a sweep is alone in its file"
        problem = Problem((), text, "put each into a file of its own; `job` names that of the job")
        raise Invalid(locate((problem,), documents[1]), documents[1], display_name(name))
