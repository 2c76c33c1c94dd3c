"""The forms of a job that its page shows: as it was given, rendered as `tfyard render` does it, and as applied."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from tfyard.errors import TfyardError
from tfyard.model import Job
from tfyard.overview.wording import harmless
from tfyard.render import RenderOptions, render, to_yaml
from tfyard.sdk.place import SpecText

TITLES = {"given": "As given", "rendered": "Rendered", "applied": "As applied"}
LONGEST = 300_000
"""Characters of a form that a page shows; all forms of a job must fit into a page that is saved."""


def with_rendered(texts: Sequence[SpecText], job: Job | None, forms: Sequence[str]) -> tuple[SpecText, ...]:
    """The texts in their order, with the first of the forms that the job can be rendered in. A job that cannot be
    read cannot be rendered."""
    rendered = [SpecText("rendered", _rendered(job, forms))] if job else []
    return tuple(sorted((*texts, *rendered), key=lambda each: list(TITLES).index(each.form)))


def _rendered(job: Job, forms: Sequence[str]) -> str:
    notes = list[str]()
    if job.code is not None and job.code.kind == "folder":
        notes.append("without the files of its code, which that adds")
        job = replace(job, code=None)
    for form in forms:
        try:
            text = to_yaml(render(form, job, RenderOptions()))
        except TfyardError as problem:
            notes.append(f"not --as {form}: {problem}")
        else:
            return "".join((*_comments(f"as `tfyard render --as {form}` writes it", *notes), text))
    return "".join(_comments("it cannot be rendered", *notes))


def _comments(*notes: str) -> Iterator[str]:
    return (f"# {line}\n" for note in notes for line in note.splitlines())


def shown(forms: Sequence[SpecText]) -> list[tuple[str, str, str]]:
    """Key, title and text of each form."""
    return [(each.form, TITLES[each.form], harmless(_cut(each.text))) for each in forms]


def _cut(text: str) -> str:
    rest = len(text) - LONGEST
    return text if rest <= 0 else f"{text[:LONGEST]}\n# {rest:,} characters more: `tfyard describe --spec`"
