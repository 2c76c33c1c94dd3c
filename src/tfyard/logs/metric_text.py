"""The parts of a line that reports metrics: the position of the training, and the metrics with their values.

Programs print both in many ways. `tests/logs/metric_lines.py` has the lines that are understood, and those that
only look like them.
"""

import re
from collections.abc import Iterator

import msgspec

from tfyard.model.corrupt_json import CORRUPT_JSON

NUMBER = r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|(?i:nan|inf(?:inity)?))"

# All patterns are compiled on first use: many runs need none of them.
_TENSOR = (
    rf"\b(?:tf\.Tensor|tensor|np\.float\d+)\(({NUMBER})[^()]*(?:\(\d*,?\)[^()]*)?\)"
    rf"|<tf\.Tensor:[^>]*numpy=({NUMBER})>"
)
_PREFIX = (
    r"[IWEF]\d{4} [\d:.]+\s+\d+ [\w./-]+:\d+\] "  # absl
    r"|(?:DEBUG|INFO|WARNING):[\w.]+:"  # logging.basicConfig
    r"|\[?\d{4}-\d\d-\d\d[T ][\d:.,]+Z?\]?:?\s*(?:-\s*)?(?:\[?(?i:debug|info|warning)\b\s*\]?[\s:-]*)?"
)
_COUNT = r"(\d{1,3}(?:,\d{3})+(?!\d)|\d+)"
_OF = rf"(?:\s*/\s*{_COUNT})?"
_IS = r"[\"']?\s*[:=#]?\s*\[?"
_START = r"(?i)(?<![a-z\d/-])(?:(?:global|train(?:ing)?)[_ ])?"
_STEP = rf"{_START}(?:step|iteration|iter|batch|episode){_IS}{_COUNT}(?!\d|\.\d){_OF}\]?"
_EPOCH = rf"{_START}epoch{_IS}{_COUNT}(?:\.\d+)?{_OF}\]?(?:[\s|\[]*{_COUNT}\s*/\s*{_COUNT})?"
_STEPS = rf"(?i)\b{_COUNT} (?:training |global )?steps?\b(?:\(s\))?"
_BRACKETS = rf"\s*\[\s*{_COUNT}{_OF}\]"
_FRACTION = rf"\s*{_COUNT}\s*/\s*{_COUNT}\s*[,:|-]"
_EPOCH_AND_STEP = rf"\s*\[{_COUNT},\s+{_COUNT}\]"
_MOST_EPOCHS = 1_000_000
"""Larger numbers after `epoch` are times of Unix."""

_WORD = r"(?!(?i:nan|inf|infinity)(?![\w/@-]))[A-Za-z_][\w/@-]*+(?:'s)?"
_NAME = rf"(?<![\w.])((?:{_WORD} {{1,3}}){{0,2}}(?!is ){_WORD})"
_COMMA = r"[-+]?\d+,\d+(?:[eE][-+]?\d+)?(?![\d.,])"
_PAIR = rf"{_NAME}[\"']?(\s*[:=|]\s*|\s+is\s+|\s+)({_COMMA}|{NUMBER})(?:(%)|/(\d+))?\.?(?=$|[\s,;)\]}}|])"
_THOUSANDS = r"[-+]?[1-9]\d{0,2},\d{3}"
_AT = (
    rf"{_NAME}(?: \([^)]*\))? (?:at|for|after|over) (?:final )?(step|epoch|iteration|episode)(?: {_COUNT})?"
    rf"\s*[:=]\s*({NUMBER})\.?$"
)
_LONG = ("loss", "entropy", "accuracy", "perplexity", "reward", "auc", "precision", "recall", "error")
_SHORT = ("acc", "cost", "f1", "iou", "mae", "mse", "ppl", "return", "rmse")
METRICS = (*_LONG, *_SHORT)
"""Each metric that is read has one of these words in its name; the short ones as a word of its own."""
_METRIC = rf"(?:{'|'.join(_LONG)})(?:es)?(?![a-z])|(?:^|[_/-])(?:{'|'.join(_SHORT)})(?:$|[_/@-])"
_FILLER = r" (?:score|value|mean|average)$"
_NESTED = r"\s*\{.*[\"']:\s*\{"
_SETTING = (
    r"(?:\b|_)(?:delta|estimated|fn|function|packet|patience|scale|target|threshold|weights?)(?:\b|_)"
    r"|return (?:code|value)"
)
"""Words that make a name a setting of a metric, or another kind of loss."""
_AMBIGUOUS = r"precision|recall|error|^return$"
"""Metrics whose whole numbers mean something else: error: 2, precision=32, return 0."""


def mentions_metric(line: str) -> bool:
    """Whether a line may report a metric; this is checked first, because most lines do not."""
    lower = line.lower()
    return any(word in lower for word in METRICS)


def cleaned(line: str) -> str:
    """The line without the prefix of its logger, and with the number of a tensor for the tensor."""
    prefix = re.match(_PREFIX, line)
    line = line[prefix.end() :] if prefix else line
    if "ensor" in line or "np." in line:
        return re.sub(_TENSOR, lambda match: match[1] or match[2], line)
    return _flat(line) if re.match(_NESTED, line) else line


def _flat(line: str) -> str:
    """An object of JSON with objects in it as one of names with their paths: train/loss."""
    try:
        return ", ".join(_leaves("", msgspec.json.decode(line)))
    except CORRUPT_JSON:
        return line


def _leaves(path: str, value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(f"{path}/{name}" if path else name, inner)
    elif isinstance(value, int | float):
        yield f"{path}: {value}"


def counts(text: str) -> tuple[dict[str, int], str]:
    """Step, total, epoch and epochs of a line, as far as it has them; and the line without them."""
    result: dict[str, int] = {}
    for match in re.finditer(_EPOCH, text):
        _note(result, epoch=match[1], epochs=match[2], step=match[3], total=match[4])
    for match in re.finditer(_STEP, text):
        _note(result, step=match[1], total=match[2])
    rest = re.sub(_STEP, "|", re.sub(_EPOCH, "|", text))
    if result:
        return result, rest
    if after := re.search(_STEPS, text):
        _note(result, step=after[1])
    elif brackets := re.match(_BRACKETS, text) or re.match(_FRACTION, text):
        _note(result, step=brackets[1], total=brackets[2])
    elif pair := re.match(_EPOCH_AND_STEP, text):
        _note(result, epoch=pair[1], step=pair[2])
    place = after or brackets or pair if result else None
    return result, f"{text[: place.start()]}|{text[place.end() :]}" if place else text


def metrics(text: str) -> tuple[dict[str, float], bool]:
    """The metrics of a text, and whether it has nothing else."""
    values, rest = dict[str, float](), text
    for match in re.finditer(_PAIR, text):
        name, number = " ".join(match[1].lower().split()), _with_point(match[3])
        percent, of = match[4], match[5]
        if number and is_metric(name) and (percent or not _is_ambiguous(name, number)):
            values[name] = (
                round(float(number) / 100, 12) if percent else float(number) / (float(of or 1) or 1)
            )
            rest = rest.replace(match[0], "", 1)
    return values, re.search(r"\w", rest) is None


def metric_at(text: str) -> tuple[dict[str, float], dict[str, int]]:
    """The metric of `Training loss (for one batch) at step 200: 0.3`, and its position."""
    match = re.search(_AT, text)
    if match is None or not is_metric(match[1].lower()):
        return {}, {}
    unit = "epoch" if match[2].lower() == "epoch" else "step"
    return {match[1].lower(): float(match[4])}, {unit: _int(match[3])} if match[3] else {}


def is_metric(name: str) -> bool:
    last = re.sub(_FILLER, "", name).rpartition(" ")[2]
    return re.search(_METRIC, last) is not None and re.search(_SETTING, name) is None


def _is_ambiguous(name: str, number: str) -> bool:
    return number.lstrip("+-").isdigit() and re.search(_AMBIGUOUS, name) is not None


def _with_point(number: str) -> str:
    """A number with a decimal comma as one with a point; empty, if its comma may separate thousands."""
    return "" if re.fullmatch(_THOUSANDS, number) else number.replace(",", ".")


def _note(result: dict[str, int], **numbers: str | None) -> None:
    """Keeps the first of each."""
    if _int(numbers.get("epoch") or "0") > _MOST_EPOCHS:
        return
    for name, text in numbers.items():
        if text is not None:
            result.setdefault(name, _int(text))


def _int(text: str) -> int:
    return int(text.replace(",", ""))
