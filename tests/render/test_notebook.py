"""A notebook server beside a job: its password, and what it knows of the job."""

import base64
import http.cookiejar
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import without
from tests.ports import reserved_port

from .calling import HERE, JOBS, Manifest, named, of_kind, python, tfyard
from .test_tfjob import TWO_NAMED_DATA

PASSWORD = "a good password"


def render(*arguments: str | Path) -> list[Manifest]:
    return tfyard("notebook", "render", *arguments, "--password-file", HERE / "pw.txt").objects


def config(objects: list[Manifest]) -> str:
    (secret,) = of_kind(objects, "Secret")
    return base64.b64decode(secret["data"]["jupyter_server_config.json"]).decode()


def test_only_the_hash_of_the_password_is_written_and_it_is_the_same_every_time() -> None:
    done = tfyard("notebook", "render", "--password-file", HERE / "pw.txt", "--explain")
    assert PASSWORD not in done.out
    assert PASSWORD not in config(done.objects)
    hashed = json.loads(config(done.objects))["PasswordIdentityProvider"]["hashed_password"]
    assert hashed.startswith("argon2:$argon2id$v=19$m=10240,t=10,p=8$")
    assert config(render()) == config(done.objects)


def test_two_servers_never_share_a_salt() -> None:
    first, second = (json.loads(config(render("--name", name))) for name in ("one", "two"))
    salts = {c["PasswordIdentityProvider"]["hashed_password"].split("$")[4] for c in (first, second)}
    assert len(salts) == 2


@pytest.fixture
def jupyter(tmp_path: Path) -> Iterator[str]:
    """A real server, started by the rendered script with the rendered config."""
    pytest.importorskip("jupyter_server")
    objects = render()
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "jupyter_server_config.json").write_text(config(objects))
    script = tmp_path / "jupyter.sh"
    script.write_text(named(objects, "ConfigMap", "jupyter-start")["data"]["jupyter.sh"])
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "JUPYTER_CONFIG_PATH": str(tmp_path / "config"),
        "NOTEBOOKS": str(tmp_path),
        "HOME": str(tmp_path),
    }
    with reserved_port() as port:
        process = subprocess.Popen(["/bin/sh", script, f"--port={port}"], env=env, stderr=subprocess.DEVNULL)
        yield f"http://127.0.0.1:{port}"
        process.terminate()
        process.wait()


@pytest.mark.processes
@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
def test_a_real_jupyter_server_accepts_the_password_and_no_other(jupyter: str) -> None:
    assert login(jupyter, PASSWORD) == 200
    assert login(jupyter, "a bad password") in (401, 403)


def login(server: str, password: str) -> int:
    """Status of a request that needs a login, after an attempt to log in."""
    cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    opener = urllib.request.build_opener(cookies, urllib.request.ProxyHandler({}))
    page = _open_patiently(opener, f"{server}/login")
    token = re.search(r'name="_xsrf" value="([^"]+)"', page)
    assert token is not None
    form = urllib.parse.urlencode({"password": password, "_xsrf": token[1]}).encode()
    try:
        opener.open(f"{server}/login", form, timeout=30).close()
        with opener.open(f"{server}/api/contents", timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def _open_patiently(opener: urllib.request.OpenerDirector, address: str) -> str:
    for _ in range(120):
        try:
            with opener.open(address, timeout=30) as answer:
                return str(answer.read().decode())
        except OSError:
            time.sleep(0.5)
    raise AssertionError("the server did not come up")


def test_the_notebook_server_mounts_the_volumes_of_the_tasks() -> None:
    (deployment,) = of_kind(render(JOBS / "mnist.yaml"), "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    mounts = {mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
    assert {"/data", "/out"} <= mounts
    assert spec["containers"][1]["command"][3:6] == ["tensorboard", "--logdir", "/out/logs"]


@pytest.mark.parametrize(("logs", "room"), [("/out/logs", 0), ("/out", 0), ("/output", 1)])
def test_summaries_on_a_volume_are_not_hidden_by_an_empty_one(logs: str, room: int, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        f"name: a\nimage: x\nvolumes: {{out: {{claim: c, at: /out}}}}\ntensorboard: {logs}\nrun: [a]\n"
    )
    (deployment,) = of_kind(render(job), "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    for container in spec["containers"]:
        mounts = [mount["mountPath"] for mount in container["volumeMounts"] if mount["mountPath"] == logs]
        assert len(mounts) == (1 if room or logs == "/out" else 0)
    assert sum(volume["name"] == "tfyard-summaries" for volume in spec["volumes"]) == room


def test_volumes_of_one_name_that_differ_are_both_there(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(TWO_NAMED_DATA)
    (deployment,) = of_kind(render(job), "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    servers = {v["name"]: v["nfs"]["server"] for v in spec["volumes"] if "nfs" in v}
    mounts = {m["mountPath"]: servers.get(m["name"]) for m in spec["containers"][0]["volumeMounts"]}
    assert [mounts[path] for path in ("/a", "/b", "/c")] == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    assert len(servers) == len([v for v in spec["volumes"] if "nfs" in v]) == 3


def test_the_notebook_server_knows_the_cluster_and_is_its_chief_if_the_job_has_none() -> None:
    env = _env(render(JOBS / "cancer.yaml"))
    cluster = {
        "worker": ["cancer-worker-0.cancer.default.svc:2222", "cancer-worker-1.cancer.default.svc:2222"],
        "ps": ["cancer-ps-0.cancer.default.svc:2222"],
    }
    assert json.loads(env["CLUSTER_CONFIG"]) == cluster
    config = json.loads(env["TF_CONFIG"])
    assert config["task"] == {"type": "chief", "index": 0}
    assert config["cluster"] == {"chief": ["cancer-jupyter.default.svc:2222"], **cluster}
    assert "TF_CONFIG" not in _env(render(JOBS / "mnist.yaml"))


def test_a_job_without_any_task_has_no_addresses_as_plain_jobs_and_says_so(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("name: a\nimage: x\nrun: train\nworker: 0\n")
    done = tfyard("notebook", "render", job, "--as", "plain", "--password-file", HERE / "pw.txt")
    assert (done.code, done.out) == (1, "")
    assert "there is nothing to render" in done.err


def test_addresses_are_those_of_the_form_in_which_the_job_was_rendered() -> None:
    env = _env(render(JOBS / "cancer.yaml", "--as", "plain"))
    assert json.loads(env["CLUSTER_CONFIG"])["ps"] == ["cancer-2.cancer.default.svc:2222"]


def _env(objects: list[Manifest]) -> dict[str, str]:
    (deployment,) = of_kind(objects, "Deployment")
    env = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    return {entry["name"]: entry.get("value", "") for entry in env}


def test_the_service_is_reached_by_port_forward_unless_another_type_is_chosen() -> None:
    done = tfyard("notebook", "render", "--password-file", HERE / "pw.txt")
    assert of_kind(done.objects, "Service")[0]["spec"]["type"] == "ClusterIP"
    assert "port-forward service/jupyter 8888:8888" in done.err
    balanced = render("--service-type", "LoadBalancer")
    assert of_kind(balanced, "Service")[0]["spec"]["type"] == "LoadBalancer"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "a password is needed"),
        (("--password-env", "TFYARD_NOT_SET"), "must be one line, not empty"),
        (("--password-file", "/no/such/file"), "file not found"),
        (("--password-file", "a", "--password-env", "B"), "not both"),
    ],
)
def test_without_a_password_nothing_is_written(options: tuple[str, ...], message: str) -> None:
    done = tfyard("notebook", "render", *options)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


WITHOUT_ARGON2 = without("argon2", "_argon2_cffi_bindings")
CONFIG = "resources: [{type: jupyter-service, properties: {password: a good password}}]"


@pytest.mark.processes
@pytest.mark.parametrize(
    "words", [("notebook", "render", "--password-file", HERE / "pw.txt"), ("render", "-")], ids=str
)
def test_without_argon2_one_line_says_what_to_install(words: tuple[str | Path, ...]) -> None:
    done = python("-c", WITHOUT_ARGON2, *words, text=CONFIG)
    assert (done.code, done.out) == (2, "")
    assert done.err == 'tfyard: Jupyter\'s password needs argon2-cffi: pip install "tfyard[notebook]"\n'


@pytest.mark.processes
def test_without_argon2_jobs_are_rendered_as_ever() -> None:
    done = python("-c", WITHOUT_ARGON2, "render", JOBS / "cancer.yaml", "--as", "plain")
    assert (done.code, done.err) == (0, "")
    assert done.out == tfyard("render", JOBS / "cancer.yaml", "--as", "plain").out


def test_there_is_no_option_for_a_password_on_the_command_line() -> None:
    done = tfyard("notebook", "render", "--password", PASSWORD)
    assert done.code == 2
