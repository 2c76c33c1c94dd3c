"""A strict little reader of Prometheus' text format 0.0.4: what it does not expect, it refuses."""

import re
from typing import NamedTuple

HEAD = re.compile(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)\Z")
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.+)\})? (\S+)\Z")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,(?=.)|\Z)')
SUFFIXES = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Family(NamedTuple):
    type: str
    help: str
    samples: Samples


def parse(text: str) -> dict[str, Family]:
    assert text.endswith("\n"), "the last line must end, too"
    families: dict[str, Family] = {}
    lines = text[:-1].split("\n")
    while lines:
        name, family = _family(lines)
        assert name not in families, f"{name} stands there twice"
        families[name] = family
    return families


def _family(lines: list[str]) -> tuple[str, Family]:
    """HELP, then TYPE, then all of its samples together."""
    (word, name, help), (then, same, type) = _head(lines.pop(0)), _head(lines.pop(0))
    assert (word, then, same) == ("HELP", "TYPE", name)
    samples: Samples = {}
    while lines and not lines[0].startswith("#"):
        sample, labels, value = _sample(lines.pop(0))
        assert sample in {name + suffix for suffix in SUFFIXES[type]}, f"{sample} is no sample of {name}"
        assert (sample, labels) not in samples
        samples[sample, labels] = value
    return name, Family(type, _unescape(help), samples)


def _head(line: str) -> tuple[str, str, str]:
    found = HEAD.match(line)
    assert found, line
    return found[1], found[2], found[3]


def _sample(line: str) -> tuple[str, tuple[tuple[str, str], ...], float]:
    found = SAMPLE.match(line)
    assert found, line
    return found[1], tuple(_labels(found[2] or "")), float(found[3])


def _labels(text: str) -> list[tuple[str, str]]:
    labels, end = [], 0
    while end < len(text):
        found = LABEL.match(text, end)
        assert found, text[end:]
        labels.append((found[1], _unescape(found[2])))
        end = found.end()
    return labels


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)
