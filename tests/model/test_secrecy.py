"""What looks like a secret is hidden, and what only sounds like one is not."""

import pytest

from tfyard.model.secrecy import is_secret, scrubbed, scrubbed_words

SECRET = "s3cr3t-Val9"
NAMES = (
    "PASSWORD", "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "dbPassword", "password-file", "passphrase",
    "HF_TOKEN", "WANDB_API_KEY", "apikey", "apiKey", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "SECRET",
    "client_secret", "AZURE_STORAGE_KEY", "AccountKey", "PRIVATE_KEY", "SSH_KEY", "signing-key", "--key",
    "GOOGLE_APPLICATION_CREDENTIALS", "MLFLOW_TRACKING_TOKEN", "auth_token", "authToken", "SLACK_WEBHOOK_URL",
    "SENTRY_DSN", "DB_CONNECTION_STRING", "session_cookie", "JWT", "BEARER", "NETRC_AUTH", "GITHUB_PAT",
)  # fmt: skip
HARMLESS = (
    ("lr", "0.1"), ("tokenizer", "bpe"), ("TOKENIZERS_PARALLELISM", "false"), ("max_tokens", "512"),
    ("num-tokens", "8"), ("key_dim", "64"), ("pass_count", "2"), ("KEYWORD", "cat"), ("monkey", "see"),
    ("author", "me"), ("keyboard", "us"), ("token_type", "word"), ("compass", "north"), ("path", "/data"),
    ("keypoints", "17"), ("authority", "x"), ("n_keys", "3"), ("spin", "up"),
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret(name, SECRET)
    assert SECRET not in " ".join(
        scrubbed_words(["train.py", f"--{name.lstrip('-')}", SECRET, f"{name}={SECRET}"])
    )
    for text in (
        f"{name}: {SECRET}",
        f'{{"{name}": "{SECRET}", "lr": 1}}',
        f"sh --{name.strip('-')} {SECRET}; ls",
    ):
        assert SECRET not in scrubbed(text), text


@pytest.mark.parametrize(("name", "value"), HARMLESS)
def test_names_that_only_sound_like_secrets_are_kept(name: str, value: str) -> None:
    assert not is_secret(name, value)
    assert scrubbed(f"run --{name} {value} {name}={value}") == f"run --{name} {value} {name}={value}"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("https://me:hunter22@git.example/x.git", "https://***@git.example/x.git"),
        ("postgres://u:p%40ss@db:5432/runs", "postgres://***@db:5432/runs"),
        ("https://ghp_0123456789abcdefABCDEF@github.com/a/b", "https://***@github.com/a/b"),
        ("ghp_0123456789abcdefABCDEF", "***"),
        ("x hf_abcdefghijklmnopqrstu y", "x *** y"),
        ("AKIAIOSFODNN7EXAMPLE", "***"),
        ("Authorization: Bearer abcdef.123456", "Authorization: ***"),
        ("-H 'X: Basic dXNlcjpwYXNz'", "-H 'X: Basic ***'"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "***"),
        ("https://h/x?sig=a&api_key=abc&lr=1", "https://h/x?sig=a&api_key=***&lr=1"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nx", "***\nx"),
        ("AccountName=a;AccountKey=b+c/d==;x=1", "AccountName=a;AccountKey=***;x=1"),
    ],
)  # fmt: skip
def test_values_that_are_secrets_by_their_form_are_hidden(text: str, hidden: str) -> None:
    assert scrubbed(text) == hidden


def test_what_refers_to_a_secret_is_no_secret() -> None:
    assert scrubbed("--token $(TOKEN) --password ${PW}") == "--token $(TOKEN) --password ${PW}"
    assert scrubbed("git@github.com:a/b.git user@host") == "git@github.com:a/b.git user@host"
