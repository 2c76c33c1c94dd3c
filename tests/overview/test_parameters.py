"""Parameters as programs are given them: by the words of their command, in a shell or not, and by variables."""

from typing import Any

import pytest

from tfyard.model import CHIEF, PS, WORKER, Job, Role
from tfyard.overview.parameters import LONGEST, command, parameters


def role(
    name: str, command: list[str], env: dict[str, Any] | None = None, args: list[str] | None = None
) -> Role:
    variables = [
        {"name": key, **(value if isinstance(value, dict) else {"value": value})}
        for key, value in (env or {}).items()
    ]
    container = {"name": "tensorflow", "command": command, "args": args or [], "env": variables}
    return Role(name=name, template={"spec": {"containers": [{"name": "log"}, container]}})


def job(*words: str, **env: Any) -> Job:
    return Job(name="a", roles=(role(WORKER, [*words], env),))


def shell(script: str, **env: Any) -> Job:
    return job("/bin/sh", "-c", script, **env)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("python train.py --lr 0.1 --steps=300", {"lr": "0.1", "steps": "300"}),
        ("python -u -W error -m pkg.train --lr 1e-3 -b 32", {"lr": "1e-3", "b": "32"}),
        ("python3.11 -c code --x 1", {"x": "1"}),
        ("./train --shuffle --out /out", {"shuffle": "true", "out": "/out"}),
        ("python train.py --layers 64 64 32 data.csv", {"layers": "64 64 32"}),
        ("python train.py --bias -0.5 --gamma -1e-3 --name x y", {"bias": "-0.5", "gamma": "-1e-3", "name": "x"}),
        ("python train.py model.depth=3 +opt.lr=0.1", {"model.depth": "3", "opt.lr": "0.1"}),
        ("env LR=0.1 python train.py", {"LR": "0.1"}),
        ("python train.py --lr {lr} --last", {"lr": "{lr}", "last": "true"}),
        ("python train.py --in - -- --x 3", {"in": "-", "x": "3"}),
        ("python", {}),
        ("", {}),
    ],
)  # fmt: skip
def test_words_of_a_command(words: str, expected: dict[str, str]) -> None:
    assert parameters(job(*words.split())) == expected
    assert parameters(shell(words)) == expected or not words


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("pip install --upgrade x && exec python train.py --lr 0.1", {"lr": "0.1"}),
        ("LR=0.1 python train.py --n 3 2>&1 | tee --append log; echo --done 1", {"LR": "0.1", "n": "3"}),
        ("cd /x\npython train.py \\\n  --note 'a b' \\\n --lr 1\n", {"note": "a b", "lr": "1"}),
        ("python train.py --lr $LR --b ${B} --c $C", {"LR": "5", "B": "6", "lr": "5", "b": "6", "c": "$C"}),
        ("python train.py --open 'quote", {"open": "'quote"}),
    ],
)
def test_shell_scripts(script: str, expected: dict[str, str]) -> None:
    env = {"LR": "5", "B": "6"} if "$" in script else {}
    assert parameters(shell(script, **env)) == expected


def test_variables_count_and_arguments_win_over_them() -> None:
    assert parameters(job("python", "a.py", "--LR", "2", LR="1", EPOCHS="3")) == {"LR": "2", "EPOCHS": "3"}


def test_references_are_replaced_as_the_kubelet_does() -> None:
    assert parameters(job("train", "--lr", "$(LR)", LR="0.1"))["lr"] == "0.1"


def test_the_decisive_task_counts() -> None:
    chief, worker = role(CHIEF, ["t"], args=["--lr", "1"]), role(WORKER, ["t", "--lr", "2"])
    assert parameters(Job(name="a", roles=(worker, role(PS, ["p"]), chief))) == {"lr": "1"}
    assert parameters(Job(name="a")) == {}
    assert parameters(Job(name="a", roles=(Role(name=WORKER),))) == {}


def test_secrets_are_no_parameters_in_whatever_way_they_come() -> None:
    given = job(
        "python", "train.py", "--api-key", "hush1", "--password=hush2", "--url", "https://u:hush3@h/x",
        "--copy", "$(DB_PASSWORD)", "--header", "Authorization: Bearer hush44", "--lr", "0.1", "token=hush5",
        DB_PASSWORD="hush6", TOKEN={"valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}},
        LEVEL={"valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}},
        CONFIG='{"user": "me", "secret": "hush7"}',
    )  # fmt: skip
    assert parameters(given) == {
        "CONFIG": '{"user": "me", "secret": "***"}',
        "url": "https://***@h/x",
        "copy": "$(DB_PASSWORD)",
        "header": "Authorization: ***",
        "lr": "0.1",
    }
    assert "hush" not in str(command(given))
    assert "hush" not in str(
        command(shell("train --api-key hush1 --url 'https://u:hush@h'; PASSWORD=hush2 x"))
    )


def test_a_value_that_is_a_document_is_cut() -> None:
    assert len(parameters(job("t", "--config", "x" * 5000))["config"]) == LONGEST
