"""Job -> text: the formats that tfyard writes, and the YAML style of all its output."""

from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from tfyard.model import Job, Manifest

from .yaml import scalars

if TYPE_CHECKING:
    import yaml  # 10 ms, which JSON does not need

SCHEMA_LINE = "# yaml-language-server: $schema=.tfyard/jobfile.json\n"
"""First line of job files that tfyard writes, by which editors find the schema."""
SWEEP_SCHEMA_LINE = SCHEMA_LINE.replace("jobfile", "sweepfile")

Version = Literal["v1", "jobfile"]


class Dumped(Struct, frozen=True):
    document: Manifest
    lost: list[str]
    """Descriptions of what this format cannot express."""
    heading: str = ""

    def text(self) -> str:
        notes = "".join(comment(f"not carried over: {line}") for line in self.lost)
        return self.heading + notes + to_yaml(self.document)


def comment(text: str) -> str:
    """A comment of one line, even if names that users chose have line breaks."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))
    return f"# {shown}\n"


def dump(job: Job, version: Version) -> Dumped:
    if version == "jobfile":
        from .jobfile import dump as jobfile  # 33 ms; most commands write only one of the two forms, or none

        return Dumped(*jobfile.dump(job), SCHEMA_LINE)
    from .tfjob import conversion  # 15 ms

    return Dumped(*conversion.dump(job))


def to_yaml(*documents: Manifest) -> str:
    """Byte-stable YAML: keys in the order of the mapping, no line folding, long texts as blocks, no anchors."""
    import yaml  # 10 ms, and most commands write nothing

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
    import yaml  # as above

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

    Dumper.add_representer(str, _represent_text)
    return Dumper


def _represent_text(dumper: Any, text: str) -> "yaml.Node":
    """Text of several lines becomes a block, so that a script in a manifest reads as a script."""
    is_block = "\n" in text and not any(line.endswith((" ", "\t")) for line in text.split("\n"))
    style = "|" if is_block else "'" if _needs_quotes(text) else None
    node: yaml.Node = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    return node


def _needs_quotes(text: str) -> bool:
    """PyYAML does not quote `y` and `1e3`, which kubectl (and so tfyard) reads as other types than text."""
    try:
        return not isinstance(scalars.resolve(text), str)
    except scalars.TooLarge:
        return True
