"""Job -> text: the formats that we write, and the one YAML style for everything that we write."""

from typing import Literal

from msgspec import Struct

from tfyard.model import Job, Manifest

SCHEMA_LINE = "# yaml-language-server: $schema=.tfyard/jobfile.json\n"
"""The first line of a job file that we write: editors find the schema with it."""

Version = Literal["v1", "jobfile"]


class Dumped(Struct, frozen=True):
    document: Manifest
    lost: list[str]
    """What this format cannot express, in words."""
    heading: str = ""

    def text(self) -> str:
        notes = "".join(comment(f"not carried over: {line}") for line in self.lost)
        return self.heading + notes + to_yaml(self.document)


def comment(text: str) -> str:
    """One line, whatever names of the user are in it."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))
    return f"# {shown}\n"


def dump(job: Job, version: Version) -> Dumped:
    if version == "jobfile":
        from .jobfile import dump as jobfile

        return Dumped(*jobfile.dump(job), SCHEMA_LINE)
    from .tfjob import dump as tfjob

    return Dumped(*tfjob.dump(job))


def to_yaml(*documents: Manifest) -> str:
    """Byte-stable: keys in our order, no line folding, long texts as blocks, no anchors or aliases."""
    from .yaml import dumper  # slow to import, and most commands write nothing

    return dumper.dump(documents)
