"""What looks like a secret: names such as `HF_TOKEN` or `--api-key`, and values that are one by their form. No
record of a job holds the value of one."""

import re
from collections.abc import Iterable, Iterator

HIDDEN = "***"

_ANYWHERE = re.compile(
    r"passw|passphrase|passcode|(^|_)pwd|pwd$|secret|credential|bearer|cookie|webhook|signature|jwt|(^|_)dsn(_|$)"
    r"|(api|access|private|signing|account|encryption|storage|ssh|deploy|master|shared)_?keys?(_|$)"
    r"|token(?!iz|is|s)|conn(ection)?_?str(ing)?"
)
"""Parts of a name that say enough by themselves, also without a separator: PGPASSWORD."""
_OF_TEXTS = re.compile(r"token_?(type|id|ids|count|len|length|dim|size|embed\w*)(_|$)")
"""Names around the tokens of a text."""
_UNLESS_A_NUMBER = frozenset(
    ("key", "keys", "tokens", "pass", "auth", "authorization", "pat", "sas", "salt", "pin", "otp", "cert")
)
"""Words that are said of numbers, too: `--key-dim 64`, `--max-tokens 512`."""
_LAST_WORD = frozenset(("key", "pass", "auth", "pat", "pin", "otp"))
"""Words that make a secret of a number, too, if the name ends with them: `--pin 1234`."""
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|true|false|none", re.IGNORECASE)

_BY_FORM = re.compile(
    r"""-----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)
    |\b(?:gh[pousr]_|hf_|npm_)[A-Za-z0-9]{20,} | \b(?:github_pat_|glpat-|pypi-|dop_v1_|shpat_)[\w-]{16,}
    |\bsk-(?:\w+-)?[A-Za-z0-9_]{20,} | \b[rs]k_live_\w{12,} | \bxox[abeoprs]-[\w-]{12,}
    |\b(?:AKIA|ASIA)[A-Z0-9]{16}\b | \bAIza[\w-]{30,} | \bya29\.[\w.-]{10,} | \bSG\.[\w-]{16,}\.[\w-]+
    |\beyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?
    |\$argon2(?:id|i|d)?\$\S{10,}""",
    re.VERBOSE | re.DOTALL,
)
"""Private keys, and tokens of well-known services, which begin with their own letters."""
_IN_URL = re.compile(r"(?<![\w+.-])(?P<scheme>[A-Za-z][\w+.-]{0,30}://)[^\s/?#@'\"]{1,2000}@")
_SCHEME = re.compile(r"\b(?P<scheme>Bearer|Basic|Digest|Negotiate)\s+[\w.~+/=-]{6,}")
_NAME = re.compile(
    r"""(?<![\w.-])(?P<name>-{0,2}[A-Za-z_][\w.-]{0,200}) \\?["']?\s*(?P<sign>[=:])[ \t]*
    |(?<![\w.-])(?P<option>--?[A-Za-z_][\w.-]{0,200})[ \t]+(?!-)""",
    re.VERBOSE,
)
"""A name with what stands between it and its value."""
_QUOTED = r"""\\?"(?:[^"\\]|\\[^"])*\\?"|'[^']*'"""
_VALUES = {
    ":": re.compile(rf"""{_QUOTED}|[^'",;&|)}}\]\n]+"""),
    "=": re.compile(rf"""{_QUOTED}|[^\s'",;&|)}}\]]+"""),
}
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD_WITH_VALUE = re.compile(r"(?P<name>-{0,2}[A-Za-z_][\w.-]*)=(?P<value>.*)", re.DOTALL)


def is_secret(name: str, value: str = "") -> bool:
    """Whether a variable, an option or a key of this name has a secret as its value. An empty value is judged as
    an unknown one."""
    plain = re.sub(r"[^a-z0-9]+", "_", _CAMEL.sub("_", name).lower()).strip("_")
    plain = _OF_TEXTS.sub("", plain)
    if _ANYWHERE.search(plain):
        return True
    words = plain.split("_")
    if words[-1] in _LAST_WORD:
        return True
    return not _UNLESS_A_NUMBER.isdisjoint(words) and not _NUMBER.fullmatch(value)


def scrubbed(text: str) -> str:
    """The text with `***` in place of what looks like a secret."""
    text = without_credentials(_BY_FORM.sub(HIDDEN, text))
    text = _SCHEME.sub(rf"\g<scheme> {HIDDEN}", text)
    return "".join(_without_named(text))


def without_credentials(text: str) -> str:
    """The text with `***` in place of the credentials in its URLs."""
    return _IN_URL.sub(rf"\g<scheme>{HIDDEN}@", text)


def scrubbed_words(words: Iterable[str]) -> Iterator[str]:
    """The words of a command, each scrubbed, without the values of options that look like a secret."""
    before = ""
    for word in words:
        yield _scrubbed_word(before, word)
        before = word


def _scrubbed_word(before: str, word: str) -> str:
    if before.startswith("-") and "=" not in before and not word.startswith("--") and is_secret(before, word):
        return HIDDEN
    match = _WORD_WITH_VALUE.fullmatch(word)
    return (
        f"{match['name']}={HIDDEN}" if match and is_secret(match["name"], match["value"]) else scrubbed(word)
    )


def _without_named(text: str) -> Iterator[str]:
    """Parts of the text, without the values of secret names."""
    written = 0
    for name, bare, value in _named(text):
        if is_secret(name, bare):
            begin, _, end = value[0].partition(bare)
            yield f"{text[written : value.start()]}{begin}{HIDDEN}{end}"
            written = value.end()
    yield text[written:]


def _named(text: str) -> Iterator[tuple[str, str, re.Match[str]]]:
    """Each name that has a value: an assignment, an entry or an option; with the value, and where that stands."""
    at = 0
    while match := _NAME.search(text, at):
        at = match.end()
        value = _VALUES[match["sign"] or "="].match(text, at)
        bare = value[0].strip("\\\"'") if value else ""
        if value is None or not bare or bare.startswith(("$", "{", HIDDEN)):
            continue
        name = match["name"] or match["option"]
        if is_secret(name, bare):
            at = value.end()
        yield name, bare, value


# --- files, of which a record may hold a part

_SECRET_FILE = re.compile(
    r"(^|/)(\.env(\..*)?|\.netrc|\.npmrc|\.pypirc|\.git-credentials|\.htpasswd|kubeconfig|id_(rsa|dsa|ecdsa|ed25519).*"
    r"|[^/]*(secret|credential)[^/]*\.(json|ya?ml|toml|ini|txt|env|cfg)|[^/]*\.(pem|key|p12|pfx|jks|keystore|kdbx|env))$",
    re.IGNORECASE,
)
_CONFIG_FILE = re.compile(r"\.(ya?ml|ini|cfg|conf|toml|properties|json|tfvars|sh|env)$", re.IGNORECASE)
_PASSWORD_IN_URL = re.compile(r"[A-Za-z][\w+.-]{0,30}://[^\s/?#@'\":]{0,200}:[^\s/?#@'\"{}$%<]{1,200}@")
_LITERAL = re.compile(
    r"""(?<![\w.-])(?P<name>[A-Za-z_][\w.-]{0,200})["']?\s*(?:=|:(?!:))\s*[rbfu]?(?P<q>["'])(?P<value>[^"'\s{}$<>]{4,})(?P=q)"""
)
_PLACE = re.compile(r"(name|ref|path|file|dir|folder)$")
"""Names of what only says where a secret is: secretName."""
_STRONG = re.compile(r"passw|passphrase|pwd|secret|credential|(api|access|private)_?key")


def reveals(path: str, text: str) -> bool:
    """Whether a file, by its path or by some of its text, seems to hold a secret. Programs are full of keys and
    tokens that are none (`pad_token="[PAD]"`), so a value with such a name must look like one, too."""
    if _SECRET_FILE.search(path) or _BY_FORM.search(text) or _PASSWORD_IN_URL.search(text):
        return True
    found = [(match["name"], match["value"]) for match in _LITERAL.finditer(text)]
    has_settings = _CONFIG_FILE.search(path) is not None
    found += [(name, bare) for name, bare, _ in _named(text) if has_settings or name.startswith("-")]
    return any(_is_revealed(name.strip("-"), value) for name, value in found)


def _is_revealed(name: str, value: str) -> bool:
    if not is_secret(name, value):
        return False
    plain = _CAMEL.sub("_", name).lower()
    looks_random = len(value) >= 8 and re.search(r"\d", value) and re.search(r"[A-Za-z]", value)
    return bool(looks_random or (_STRONG.search(plain) and not _PLACE.search(plain)))
