"""What looks like a secret: names such as `HF_TOKEN` or `--api-key`, and values that are one by their form. No
record of a job holds the value of one."""

import re
from collections.abc import Iterable, Iterator

from tfyard.model.url_credentials import HIDDEN, without_credentials

_ANYWHERE = re.compile(
    r"passw|pswd|passphrase|passcode|(^|_)pwd|pwd$|secret|credential|bearer|cookie|webhook|signature|jwt|(^|_)dsn(_|$)"
    r"|(api|access|private|signing|account|encryption|storage|ssh|deploy|master|shared)_?keys?(_|$)"
    r"|token(?!iz|is|s)|conn(ection)?_?str(ing)?"
)
"""Parts of a name that say enough by themselves, also without a separator: PGPASSWORD."""
_OF_TEXTS = re.compile(r"token_?(type|id|ids|count|len|length|dim|size|embed\w*)(_|$)")
"""Names around the tokens of a text."""
_UNLESS_A_NUMBER = frozenset(
    (
        "key",
        "keys",
        "tokens",
        "pass",
        "auth",
        "authorization",
        "pat",
        "sas",
        "salt",
        "pin",
        "otp",
        "cert",
        "pw",
        "hmac",
    )
)
"""Words that are said of numbers, too: `--key-dim 64`, `--max-tokens 512`."""
_LAST_WORD = frozenset(("key", "pass", "auth", "pat", "pin", "otp"))
"""Words that make a secret of a number, too, if the name ends with them: `--pin 1234`."""
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|true|false|none", re.IGNORECASE)

_BY_FORM = re.compile(
    r"""-----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY(?P<b>[ ]BLOCK)?-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY(?P=b)?-----|\Z)
    |\b(?:gh[pousr]_|hf_|npm_)[A-Za-z0-9]{20,}
    |\b(?:github_pat_|gl[a-z]{1,5}-|pypi-|dop_v1_|shpat_|dckr_pat_)[\w-]{16,}
    |\bsk-(?:\w+-)?[A-Za-z0-9_]{20,} | \bsk-(?=[\w-]*\d)[\w-]{24,}
    |\b[rs]k_live_\w{12,} | \bxox[abeoprs]-[\w-]{12,}
    |\b(?:AKIA|ASIA)[A-Z0-9]{16}\b | \bAIza[\w-]{30,} | \bya29\.[\w.-]{10,} | \bSG\.[\w-]{16,}\.[\w-]+
    |\b(?:nvapi-|whsec_|ATATT|hvs\.|lsv2_[ps][tk]_|KGAT_|r8_|AGE-SECRET-KEY-1)[\w-]{20,} | \bdapi[0-9a-f]{32}\b
    |\beyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?
    |(?<=hooks\.slack\.com/services/)[\w/]{12,} | (?<=/api/webhooks/)[\w/-]{12,} | (?<=[?&]sig=)[\w%+/=-]{20,}
    |\$argon2(?:id|i|d)?\$\S{10,}""",
    re.VERBOSE | re.DOTALL,
)
"""Private keys, and tokens of well-known services, known by their first letters or their addresses."""
_SCHEME = re.compile(r"\b(?P<scheme>Bearer|Basic|Digest|Negotiate)\s+[\w.~+/=-]{6,}")
_BARE = re.compile(
    r"""(?:(?<![\w-])(?:-[uU]|--(?:proxy-)?user|--login)[ =\t]+["']?[^\s:"'$]{1,100}:(?!\d+(?:["'\s]|$))
    |\bsshpass[ ]+-p[ ]*
    |\bmysql\w*[ ](?:[^\n|;&]{0,100}[ ])?-p(?=\S)
    |\bwandb[. ]login[ (]+(?:--\w+[ ]+)*
    |\b(?:docker|podman|helm|oras|crane|skopeo)[ ](?:[^\n|;&]{0,50}[ ])?login[ ](?:[^\n|;&]{0,100}[ ])?-p[ ]*
    |\blogin[ ]+\S+\s+password[ ]+
    |(?<![\w.$/{-])(?=[a-z]{0,40}[_.]|[A-Z])[\w.]{0,60}
     (?:passw(?:or)?d|secret|PASSW(?:OR)?D|SECRET|(?:api|access|private)_key|[A-Z]_KEY)\w{0,20}[ ]+(?![-=])
    )["']?(?P<value>(?!-)[^\s"'$;|&<>(){}]+)
    |\becho[ ]+(?:-n[ ]+)?["']?(?P<piped>[^\s"'$;|&]+)["']?[ ]*\|[^\n;&]{0,100}--(?:password|token)-stdin""",
    re.VERBOSE,
)
"""Secrets that are words of their own: of programs that are known for it, and after the plain name of a secret."""
_NAME = re.compile(
    r"""(?<![\w.-])(?P<name>-{0,2}[A-Za-z_][\w.-]{0,200}) \\?["']?\]?\s*(?P<sign>[=:])[ \t]*
    |(?<![\w.-])(?P<option>--?[A-Za-z_][\w.-]{0,200})(?:[ \t]|\\\n)+(?!-)""",
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
    return _without("".join(_without_named(text)), _bare(text))


def scrubbed_value(name: str, value: str) -> str:
    """The value of an option, scrubbed."""
    return _without(scrubbed(value), _bare(f"--{name} {value}"))


def scrubbed_words(words: Iterable[str]) -> Iterator[str]:
    """The words of a command, each scrubbed, without the values of options that look like a secret."""
    before, whole = "", [*words]
    bare = _bare(" ".join(whole))
    for word in whole:
        yield _without(_scrubbed_word(before, word), bare)
        before = word


def _bare(text: str) -> list[str]:
    """The secrets of a command that are words of their own."""
    return [match["value"] or match["piped"] for match in _BARE.finditer(text)]


def _without(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text


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
    for _, bare, value in _named(text):
        begin, _, end = value[0].partition(bare)
        yield f"{text[written : value.start()]}{begin}{HIDDEN}{end}"
        written = value.end()
    yield text[written:]


def _named(text: str) -> Iterator[tuple[str, str, re.Match[str]]]:
    """Each name of a secret that has a value: an assignment, an entry or an option; and where the value stands."""
    at = 0
    while match := _NAME.search(text, at):
        at, name = match.end(), match["name"] or match["option"]
        value = _VALUES[match["sign"] or "="].match(text, at) if is_secret(name) else None
        bare = value[0].strip("\\\"'") if value else ""
        if value is None or not bare or bare.startswith(("$", "{", HIDDEN)) or not is_secret(name, bare):
            continue
        at = value.end()
        yield name, bare, value


# --- files, of which a record may hold a part

_SECRET_FILE = re.compile(
    r"(^|/)(\.env(\..*)?|\.netrc|\.npmrc|\.pypirc|\.git-credentials|\.htpasswd|kubeconfig|id_(rsa|dsa|ecdsa|ed25519).*"
    r"|\.aws/.*|\.ssh/.*|\.docker/config\.json|\.kube/config|[^/]*(secret|credential)[^/]*\.(json|ya?ml|toml|ini|txt|env|cfg)"
    r"|[^/]*\.(pem|key|p12|pfx|jks|keystore|kdbx|env))$",
    re.IGNORECASE,
)
_CONFIG_FILE = re.compile(
    r"\.(ya?ml|ini|cfg|conf|toml|properties|json|tfvars|tf|(ba|z|fi)?sh|env|bat|cmd|ps1|md|rst|txt)$"
    r"|(^|/)(\.envrc|config|(Docker|Container|Make)file[^/]*)$",
    re.IGNORECASE,
)
_PASSWORD_IN_URL = re.compile(
    r"[A-Za-z][\w+.-]{0,30}://([^\s/?#@'\":]{0,200}:[^\s/?#@'\"{}$%<]{1,200}|(?=[\w-]*\d)[\w-]{20,})@"
)
_SECRET_OBJECT = re.compile(r"^\s*kind:\s*[\"']?Secret\b", re.MULTILINE)
_MARGIN = re.compile(r"^[+\- ]", re.MULTILINE)
"""What a diff writes before each line."""
_QUOTE = r"""\\?["'](?:["']{2})?"""
_QUOTED_VALUE = (
    rf"""[rbfu]{{0,2}}{_QUOTE}(?:(?i:bearer|basic|token)\s+)?"""
    rf"""(?P<value>(?:[^"'\s{{}}$<>\\]|\\(?!["'])){{4,}}){_QUOTE}"""
)
_PLAIN_NAME = r"(?P<name>[A-Za-z_][\w.-]{0,200})"
_LITERALS = (
    # password = "…", os.environ["HF_TOKEN"] = "…", {"password": "…"}, password: str = ("…")
    re.compile(
        rf"""(?<![\w.-]){_PLAIN_NAME}(?:{_QUOTE})?\]?\s*(?::\s*\w+\s*)?(?:=|:(?!:))\s*\(?\s*{_QUOTED_VALUE}"""
    ),
    # <password>…</password>
    re.compile(rf"<{_PLAIN_NAME}>(?P<value>[^<\s{{}}$]{{4,}})</"),
    # name: DB_PASSWORD, and value: … in the line below
    re.compile(
        rf"""\bname["']?:\s*["']?{_PLAIN_NAME}["']?,?\s*["']?value["']?:\s*["']?(?P<value>[^\s"'{{}}$<>]{{4,}})"""
    ),
    # "Server=h;Pwd=…;", "https://h/x?token=…"
    re.compile(
        rf"""[;?&"']{_PLAIN_NAME}=(?P<value>(?:[^;&"'\s{{}}$%<>\\]|%[0-9A-Fa-f]{{2}}){{4,}})(?=[;&"'\\])"""
    ),
    # export HF_TOKEN=…, ENV HF_TOKEN …
    re.compile(
        rf"""(?<!\S)["']?!?(?:export|ENV|ARG|set|setenv|%env|-e|--env)[ ]+{_PLAIN_NAME}(?:=|[ ]+)["']?"""
        r"""(?P<value>[^\s"'${}<>;&|\\]{4,})"""
    ),
)
"""Names with values, as programs and shells write them."""
_DEFAULTS = (
    # os.environ.setdefault("HF_TOKEN", "…"), add_argument("--token", default="…")
    re.compile(
        rf"""{_QUOTE}-{{0,2}}{_PLAIN_NAME}{_QUOTE}\s*,\s*(?:[^()\n]{{0,200}}?\bdefault\s*=\s*)?{_QUOTED_VALUE}"""
    ),
    # auth=("me", "…")
    re.compile(rf"""(?P<name>auth)\s*=\s*\(\s*{_QUOTE}[^"'\n]{{0,100}}{_QUOTE}\s*,\s*{_QUOTED_VALUE}"""),
)
"""The same where a value may also be a name or a placeholder: it must look like a secret by itself."""
_PLACE = re.compile(r"(name|ref|path|file|dir|folder)$")
"""Names of what only says where a secret is: secretName."""
_STRONG = re.compile(r"passw|passphrase|pwd|secret|credential|(api|access|private)_?key")
_WORDS = re.compile(r"\W?[A-Za-z]+([_ -][A-Za-z]+)*[_-]?\d{0,4}\W?")
"""Words with a number: accuracy_top5, experiment-12."""


def reveals(path: str, text: str) -> bool:
    """Whether a file, by its path or by some of its diff, seems to hold a secret. Programs are full of keys and
    tokens that are none (`pad_token="[PAD]"`), so a value with such a name must look like one, too."""
    text = _MARGIN.sub("", text)
    if any(
        known.search(text) for known in (_BY_FORM, _PASSWORD_IN_URL, _SECRET_OBJECT)
    ) or _SECRET_FILE.search(path):
        return True
    named = [(match["name"], match["value"]) for each in _LITERALS for match in each.finditer(text)]
    has_settings = _CONFIG_FILE.search(path) is not None
    named += [(name, bare) for name, bare, _ in _named(text) if has_settings or name.startswith("-")]
    defaults = ((match["name"], match["value"]) for each in _DEFAULTS for match in each.finditer(text))
    values = [*_bare(text), *(value for name, value in defaults if is_secret(name, value))]
    return any(map(_looks_random, values)) or any(
        _is_revealed(name.strip("-"), value) for name, value in named
    )


def _is_revealed(name: str, value: str) -> bool:
    if not is_secret(name, value):
        return False
    plain = _CAMEL.sub("_", name).lower()
    return _looks_random(value) or bool(_STRONG.search(plain) and not _PLACE.search(plain))


def _looks_random(value: str) -> bool:
    has_both = re.search(r"\d", value) and re.search(r"[A-Za-z]", value)
    return len(value) >= 8 and has_both is not None and not _WORDS.fullmatch(value)
