"""Job -> text: the formats that we write, and the one YAML style for everything that we write."""

from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from tfyard.model import Job, Manifest

from .yaml import scalars

if TYPE_CHECKING:
    import yaml

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
    from .tfjob import conversion

    return Dumped(*conversion.dump(job))


def to_yaml(*documents: Manifest) -> str:
    """Byte-stable: keys in our order, no line folding, long texts as blocks, no anchors or aliases."""
    import yaml  # slow to import, and most commands write nothing

    text: str = yaml.dump_all(
        documents,
        Dumper=_dumper(),
        sort_keys=False,
        width=10_000,
        allow_unicode=True,
        default_flow_style=False,
        explicit_start=len(documents) > 1,
    )
    return text


@cache
def _dumper() -> Any:
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

    Dumper.add_representer(str, _represent_text)
    return Dumper


def _represent_text(dumper: Any, text: str) -> "yaml.Node":
    """Text with several lines is a block, so that a script in a manifest reads as a script."""
    is_block = "\n" in text and not any(line.endswith((" ", "\t")) for line in text.split("\n"))
    style = "|" if is_block else "'" if _needs_quotes(text) else None
    node: yaml.Node = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    return node


def _needs_quotes(text: str) -> bool:
    """PyYAML does not quote `y` and `1e3`, which kubectl, and so tfyard, does not read as text."""
    try:
        return not isinstance(scalars.resolve(text), str)
    except scalars.TooLarge:
        return True
