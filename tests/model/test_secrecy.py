"""What looks like a secret is hidden, and what only sounds like one is not."""

import pytest

from tfyard.model.secrecy import is_secret, reveals, scrubbed, scrubbed_words

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


COMMANDS = (
    f"curl -u me:{SECRET} https://h/", f"curl --user 'me:{SECRET}' https://h/",
    f"train.py --login me:{SECRET}",
    f"sshpass -p {SECRET} ssh host", f"mysql -u root -p{SECRET} runs", f"wandb login --relogin {SECRET}",
    f"docker login -u me -p {SECRET} registry", f"echo {SECRET} | docker login -u me --password-stdin",
    f"aws configure set aws_secret_access_key {SECRET}", f"train.py --opts DB.PASSWORD {SECRET} LR 0.1",
    f"machine h login me password {SECRET}", f"train.py --token \\\n  {SECRET} --lr 1",
    f"python -c \"import os; os.environ['HF_TOKEN']='{SECRET}'\"", f"train.py --pw {SECRET} --hmac {SECRET}",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_secrets_that_are_words_of_their_own_are_hidden(command: str) -> None:
    assert SECRET not in scrubbed(command)
    assert SECRET not in " ".join(scrubbed_words(["sh", "-c", command]))
    if "'" not in command and "|" not in command:
        assert SECRET not in " ".join(scrubbed_words(command.replace("\\\n", "").split()))


def test_words_after_what_only_sounds_like_a_secret_are_kept() -> None:
    for command in (
        "docker run -u 1000:1000 image", "python train_key.py data.csv", "python make_secret.py data.csv",
        "mysql -u root -p runs", "sh -c 'make login docker'", "wandb login --relogin $KEY",
    ):  # fmt: skip
        assert scrubbed(command) == " ".join(scrubbed_words(command.split())) == command


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-abcdefghijklmnopqrst-uvwxyz",
        "nvapi-abcdefghijklmnopqrstuvwxyz0123",
        "dckr_pat_abcdefghijklmnopqrst",
        "glrt-abcdefghij0123456789",
        "hvs.CAESIabcdefghijklmnopqrstuvwxyz",
        "dapi0123456789abcdef0123456789abcdef",
        "ATATT3xFfGF0abcdefghijklmnopqrstuvwxyz",
        "whsec_abcdefghijkl0123456789",
    ],
)
def test_tokens_of_services_are_known_by_their_first_letters(secret: str) -> None:
    assert scrubbed(f"x {secret} y") == "x *** y"


REVEALING = (
    ("t.py", f'os.environ["WANDB_API_KEY"] = "{SECRET}"'),
    ("t.py", f"os.environ.setdefault('API_KEY', '{SECRET}')"),
    ("t.py", f'parser.add_argument("--token", type=str, default="{SECRET}")'),
    ("t.py", f'password: str = "{SECRET}"'),
    ("t.py", f'DEFINE_string("api_key", "{SECRET}", "help")'),
    ("t.py", f'cfg["db"]["password"] = ("{SECRET}")'),
    ("t.py", f'headers = {{"Authorization": f"Bearer {SECRET}"}}'),
    ("t.py", f'requests.get(u, auth=("me", "{SECRET}"))'),
    ("t.py", f'wandb.login("{SECRET}")'),
    ("t.py", f'connect("Server=h;Pwd={SECRET};")'),
    ("t.py", f'get("https://h?token={SECRET}")'),
    ("t.py", f'url = "https://me:{SECRET}@h/"'),
    ("t.py", f"%env WANDB_API_KEY={SECRET}"),
    ("t.py", f'api_key = """{SECRET}"""'),
    ("x.ipynb", f'"os.environ[\\"HF_TOKEN\\"] = \\"{SECRET}\\"\\n",'),
    ("x.ipynb", f'"!export TOKEN={SECRET}\\n",'),
    ("Dockerfile", f"ENV TOKEN {SECRET}"),
    ("Makefile", f"export TOKEN={SECRET}"),
    (".envrc", f"export TOKEN={SECRET}"),
    ("job.yaml", f"- name: DB_PASSWORD\n  value: {SECRET}"),
    ("s.yaml", "kind: Secret\ndata:\n  x: czNjcjN0LVZhbDk="),
    ("a.xml", f"<password>{SECRET}</password>"),
    ("run.sh", f"curl -u me:{SECRET} h"),
    (".aws/credentials", "[default]"),
    ("c.ini", f"password={SECRET}"),
    ("README.md", f"password: {SECRET}"),
    ("t.js", f"const apiKey = '{SECRET}'"),
    ("compose.yml", f"  - POSTGRES_PASSWORD={SECRET}"),
)
HARMLESS_CODE = (
    'pad_token = "[PAD]"', 'key = "loss"', 'x = {"key": "accuracy_top5"}',
    'password = os.environ["DB_PASSWORD"]',
    'parser.add_argument("--token", default=None, help="the token of user1")', 'primary_key="user_id1"',
    'secret_name = "my-secret-2"',
    'os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"', 'os.environ["TOKENIZERS_PARALLELISM"] = "false"',
    'start_token = "[START1234]"',
    'token = tokenizer.encode("abc1234567")', 'config["key_dim"] = "64"', 'password = f"{prefix}{word}"',
    'url = "ssh://git@h/x"',
    'for key in ("loss_1", "val_loss_1"):', 'password = getpass("Password: ")',
    'get(f"https://h?token={token}")',
    'cache_key = f"{name}-1"',
)  # fmt: skip


@pytest.mark.parametrize(("path", "text"), REVEALING)
def test_a_file_whose_changes_hold_a_secret_is_known(path: str, text: str) -> None:
    for mark in "+- ":
        assert reveals(path, "\n".join(f"{mark}{line}" for line in text.split("\n")))


@pytest.mark.parametrize("line", HARMLESS_CODE)
def test_code_that_only_speaks_of_keys_and_tokens_reveals_nothing(line: str) -> None:
    assert not reveals("t.py", f"+{line}")
    assert not reveals("t.py", f"-{line}")


@pytest.mark.parametrize(
    "text", ["a=", "PASSWORD", "docker login ", "echo a ", '"a",', "mysql ", "--a ", "a."]
)
def test_a_long_line_takes_no_longer_than_many_short_ones(text: str) -> None:
    """These took minutes, which a start does not have: work that grows with the square of the length."""
    assert not reveals("x.yaml", f"+{text * 40_000}")
