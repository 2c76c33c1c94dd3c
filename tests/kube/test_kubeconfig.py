"""kubectl's rules: which file, which context, which identity."""

import base64
from pathlib import Path

import pytest

from tfyard.kube import Access, BadKubeconfig, ClusterEntry, User
from tfyard.kube.kubeconfig import (
    Config,
    Context,
    Exec,
    choose,
    dump,
    in_cluster,
    load,
    material,
    merge,
    parse,
)

TEXT = """
apiVersion: v1
kind: Config
current-context: dev
clusters:
- name: dev
  cluster: {server: "https://dev:6443", certificate-authority: pki/ca.crt, tls-server-name: kube.dev}
- name: prod
  cluster: {server: "https://prod", insecure-skip-tls-verify: true, proxy-url: "http://proxy:3128"}
contexts:
- {name: dev, context: {cluster: dev, user: ada, namespace: ml}}
- {name: prod, context: {cluster: prod, user: robot}}
- {name: broken, context: {cluster: nowhere, user: ada}}
users:
- {name: ada, user: {client-certificate: ada.crt, client-key: /keys/ada.key, as: root, as-groups: [a, b]}}
- name: robot
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/login
      args: [--now]
      env: [{name: A, value: b}]
      interactiveMode: Never
preferences: {}
"""


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_the_current_context_chooses_cluster_user_and_namespace(tmp_path: Path) -> None:
    path = write(tmp_path, "config", TEXT)
    assert load({}, str(path)) == Access(
        ClusterEntry("https://dev:6443", f"{tmp_path}/pki/ca.crt", tls_server_name="kube.dev"),
        User(
            client_certificate=f"{tmp_path}/ada.crt",
            client_key="/keys/ada.key",
            impersonate="root",
            impersonate_groups=["a", "b"],
        ),
        "ml",
    )


def test_another_context_can_be_named(tmp_path: Path) -> None:
    access = load({"KUBECONFIG": str(write(tmp_path, "config", TEXT))}, context="prod")
    plugin = Exec(
        f"{tmp_path}/bin/login",
        "client.authentication.k8s.io/v1",
        ["--now"],
        [{"name": "A", "value": "b"}],
    )
    assert access.user == User(exec=plugin)
    assert access.cluster.insecure_skip_tls_verify
    assert access.cluster.proxy_url == "http://proxy:3128"
    assert access.namespace == "default"


def test_of_several_files_the_first_to_name_a_thing_wins(tmp_path: Path) -> None:
    first = "clusters: [{name: dev, cluster: {server: 'https://first'}}]\ncurrent-context: prod"
    paths = [write(tmp_path, "a", first), tmp_path / "missing", write(tmp_path, "b", TEXT)]
    access = load({"KUBECONFIG": ":".join(map(str, paths))}, context="dev")
    assert access.cluster == ClusterEntry("https://first")
    assert access.user.client_key == "/keys/ada.key"
    assert load({"KUBECONFIG": ":".join(map(str, paths))}).cluster.server == "https://prod"


def test_merging_is_a_union_of_maps() -> None:
    first = Config(contexts={"a": Context("x")}, current="a")
    second = Config(contexts={"a": Context("y"), "b": Context("z")}, current="b")
    assert merge([first, second]) == Config(contexts={"a": Context("x"), "b": Context("z")}, current="a")


def test_the_home_directory_is_the_last_file_to_be_asked(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube", "config", TEXT)
    assert load({"HOME": str(tmp_path)}).namespace == "ml"


def test_in_a_pod_without_kubeconfig_its_service_account_is_used(tmp_path: Path) -> None:
    for name, text in {"token": "t", "ca.crt": "c", "namespace": "ml\n"}.items():
        write(tmp_path, name, text)
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    assert in_cluster(environ, tmp_path) == Access(
        ClusterEntry("https://[fd00::1]:6443", f"{tmp_path}/ca.crt"),
        User(token_file=f"{tmp_path}/token"),
        "ml",
    )


@pytest.mark.parametrize(
    ("text", "context", "message"),
    [
        (TEXT, "nobody", "no context 'nobody'; there are: broken, dev, prod"),
        (TEXT, "broken", "names cluster 'nowhere', which has no server"),
        (TEXT.replace("current-context: dev", ""), "", "no current-context is set"),
        ("a: [", "", "not a kubeconfig"),
        ("- just\n- a list", "", "not a kubeconfig"),
        ("clusters: [{name: a, cluster: {server: 3}}]", "", "not a kubeconfig"),
        ("", "", "and this process does not run in a Pod"),
    ],
)
def test_problems_of_a_kubeconfig_are_named(tmp_path: Path, text: str, context: str, message: str) -> None:
    path = write(tmp_path, "config", text)
    with pytest.raises(BadKubeconfig, match=message):
        load({}, str(path), context)


def test_a_named_file_must_exist_and_a_pod_must_have_its_token(tmp_path: Path) -> None:
    with pytest.raises(BadKubeconfig, match="no such file"):
        load({}, str(tmp_path / "nothing"))
    with pytest.raises(BadKubeconfig, match="does the Pod mount"):
        in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path)


def test_inline_data_wins_over_files(tmp_path: Path) -> None:
    file = write(tmp_path, "ca", "from a file")
    assert material(base64.b64encode(b"inline").decode(), str(file)) == b"inline"
    assert material("", str(file)) == b"from a file"
    assert material("", "") == b""
    with pytest.raises(BadKubeconfig, match="cannot be read"):
        material("not base64!", "")


@pytest.mark.parametrize("content", [b"clusters: [", b"- a\n- b\n", b"\xff\xfe"])
def test_a_kubeconfig_that_cannot_be_read_is_reported_with_its_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config").write_bytes(content)
    with pytest.raises(BadKubeconfig, match=rf"^{tmp_path}/config: "):
        load({"KUBECONFIG": str(tmp_path / "config")})


def test_parsing_is_pure_and_tolerates_nulls() -> None:
    assert parse("clusters: null\nusers: []\ncontexts: null\n", Path("/x")) == Config()


@pytest.mark.parametrize(
    "user", [User(), User(token="secret"), User(exec=Exec("login", "v1", args=["now"]), impersonate="ada")]
)
def test_what_is_dumped_is_read_back(user: User) -> None:
    access = Access(ClusterEntry("https://example:6443", certificate_authority_data="YQ=="), user, "team-a")
    assert (
        choose(parse(dump(access), Path("/")), "tfyard") == choose(parse(dump(access), Path("/"))) == access
    )
