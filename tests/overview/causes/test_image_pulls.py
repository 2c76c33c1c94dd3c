"""Images that cannot be pulled: by the words of containerd 2, CRI-O and the kubelet of Kubernetes 1.36."""

import pytest

from tests.overview.situations import job, pod, waiting, warning, why
from tfyard.overview.cause import Cause

IMAGE = "hub.example/team/train:1"
PULL = f'failed to pull and unpack image "{IMAGE}": '
RESOLVE = f'{PULL}failed to resolve reference "{IMAGE}": '
HEAD = f'{RESOLVE}failed to do request: Head "https://hub.example/v2/team/train/manifests/1": '
STATUS = f"{RESOLVE}unexpected status from HEAD request to https://hub.example/v2/team/train/manifests/1: "
TOKEN = f"{RESOLVE}failed to authorize: failed to fetch anonymous token: "

UNREACHED = "the registry cannot be reached from the node"
NETWORK = "the DNS, the network or the proxy of the node"
TAG = "check the name and the tag"
LOGIN = "`pullSecret: NAME`"
ADMINISTRATOR = "/etc/containerd/certs.d/"

ANSWERS = {
    f"{HEAD}dial tcp: lookup hub.example: no such host": (UNREACHED, NETWORK),
    f"{HEAD}dial tcp: lookup hub.example on 10.96.0.10:53: server misbehaving": (UNREACHED, NETWORK),
    f"{HEAD}dial tcp 10.4.0.9:443: connect: no route to host": (UNREACHED, NETWORK),
    f"{HEAD}dial tcp 10.4.0.9:443: connect: connection refused": (UNREACHED, NETWORK),
    f"{HEAD}dial tcp 10.4.0.9:443: i/o timeout": (UNREACHED, NETWORK),
    f"{HEAD}dial tcp 10.4.0.9:40443: connect: network is unreachable": (UNREACHED, NETWORK),
    f"{HEAD}net/http: TLS handshake timeout": (UNREACHED, NETWORK),
    f"{HEAD}context deadline exceeded": (UNREACHED, NETWORK),
    f"{HEAD}proxyconnect tcp: dial tcp 10.4.0.9:3128: connect: connection refused": (UNREACHED, NETWORK),
    f'{TOKEN}Get "https://hub.example/token?scope=pull": dial tcp: lookup hub.example: no such host': (
        UNREACHED,
        NETWORK,
    ),
    'pinging container registry hub.example: Get "https://hub.example/v2/": dial tcp 10.4.0.9:443: i/o timeout': (
        UNREACHED,
        NETWORK,
    ),
    f'{PULL}failed to copy: httpReadSeeker: failed open: failed to do request: Get "https://cdn.example/": EOF': (
        UNREACHED,
        NETWORK,
    ),
    f"{STATUS}503 Service Unavailable": ("the registry answers with an error", "the kubelet tries again"),
    f"{RESOLVE}{IMAGE}: not found": ("the registry does not have it", TAG),
    "initializing source: reading manifest 1 in hub.example/team/train: manifest unknown": (
        "the registry does not have it",
        TAG,
    ),
    f"{RESOLVE}pull access denied, repository does not exist or may require authorization: server message:"
    " insufficient_scope: authorization failed": ("there is no such repository, or it is private", LOGIN),
    f"rpc error: code = Unknown desc = {STATUS}401 Unauthorized": (
        "the registry wants a login that the pod does not have",
        LOGIN,
    ),
    f"{TOKEN}unexpected status from GET request to https://hub.example/token?scope=pull: 403 Forbidden": (
        "the registry wants a login that the pod does not have",
        LOGIN,
    ),
    f"{PULL}failed to copy: httpReadSeeker: failed open: unexpected status code https://hub.example/v2/team/train:"
    " 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit. You may"
    " increase the limit by authenticating": ("the registry's rate limit is reached", LOGIN),
    f"{HEAD}tls: failed to verify certificate: x509: certificate signed by unknown authority": (
        "the registry's certificate is not trusted by the node",
        ADMINISTRATOR,
    ),
    f"{HEAD}tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time"
    " 2026-11-16T03:57:23Z is after 2026-11-01T00:00:00Z": ("the registry's certificate has expired", "renew it"),
    f"{HEAD}tls: failed to verify certificate: x509: certificate is valid for *.example.com, not hub.example": (
        "the registry's certificate is for another host",
        "the host that the certificate names",
    ),
    f"{HEAD}http: server gave HTTP response to HTTPS client": (
        "the registry speaks HTTP, and the node HTTPS",
        ADMINISTRATOR,
    ),
    f"{PULL}no match for platform in manifest: not found": (
        "there is none for the processor of the node",
        "nodeSelector",
    ),
    'choosing image instance: no image found in image index for architecture "arm64", variant "v8", OS "linux"': (
        "there is none for the processor of the node",
        "nodeSelector",
    ),
    'short-name "train:1" did not resolve to an alias and no unqualified-search registries are defined in'
    ' "/etc/containers/registries.conf"': ("the name has no registry", "`image: docker.io/NAME:TAG`"),
    f"{PULL}failed to extract layer sha256:40430: write /var/lib/containerd/1: no space left on device": (
        "the node's disk is full",
        "administrator",
    ),
}  # fmt: skip


def cause_of(reason: str, message: str, *events: str, image: str = IMAGE, secret: str = "") -> Cause:
    """`events`: the reasons of warnings about the pod."""
    secrets = {"imagePullSecrets": [{"name": secret}]} if secret else {}
    stuck = pod(status=waiting(reason, message), container={"image": image}, **secrets)
    answer = why(job(stuck, events=tuple(warning(each, each, age=9) for each in events)))
    assert answer.code == 3
    assert answer.causes[0].kind == "image-pull"
    return answer.causes[0]


@pytest.mark.parametrize("message", ANSWERS)
def test_each_answer_has_its_own_sentence_and_fix(message: str) -> None:
    words, fix = ANSWERS[message]
    first = cause_of("ErrImagePull", message)
    assert first.sentence == f"worker-0 cannot pull {IMAGE}: {words}"
    assert fix in first.fix
    assert first.evidence[0].source == "container"
    backoff = cause_of("ImagePullBackOff", f'Back-off pulling image "{IMAGE}": ErrImagePull: {message}')
    assert (backoff.sentence, backoff.fix) == (first.sentence, first.fix)


def test_an_older_kubelet_has_the_reason_only_in_the_event() -> None:
    stuck = waiting("ImagePullBackOff", 'Back-off pulling image "example/train:1"')
    event = warning(
        "Failed", 'Failed to pull image "example/train:1": rpc error: code = NotFound desc = not found'
    )
    answer = why(job(pod(status=stuck), events=(event,)))
    assert answer.sentence == "worker-0 cannot pull example/train:1: the registry does not have it"
    assert answer.causes[0].evidence[0].source == "event"


def test_the_kubelets_own_reasons() -> None:
    invalid = (
        'Failed to apply default image tag "Train::1": couldn\'t parse image name "Train::1": invalid reference'
        " format: repository name (library/Train) must be lowercase"
    )
    assert cause_of("InvalidImageName", invalid).sentence.endswith("the name is not valid")
    never = cause_of(
        "ErrImageNeverPull", f'Container image "{IMAGE}" is not present with pull policy of Never'
    )
    assert never.sentence.endswith("it is not on the node, and imagePullPolicy is Never")
    assert "imagePullPolicy: IfNotPresent" in never.fix
    assert cause_of("RegistryUnavailable", "").sentence.endswith(UNREACHED)
    signature = cause_of("SignatureValidationFailed", "image pull failed because the signature is invalid")
    assert signature.sentence.endswith("the node does not accept its signature")


@pytest.mark.parametrize("name", ["team/denied-404:401", "team/train@sha256:" + "404" * 21 + "0"])
def test_words_and_digits_of_a_name_are_no_answer(name: str) -> None:
    """A digest is long: the registry's answer comes after the part that is quoted."""
    image = f"hub.example/{name}"
    message = HEAD.replace(IMAGE, image) + "dial tcp 10.4.0.9:443: connect: no route to host"
    cause = cause_of("ErrImagePull", message, image=image)
    assert cause.sentence == f"worker-0 cannot pull {image}: {UNREACHED}"
    missing = cause_of(
        "ImagePullBackOff", f'Back-off pulling image "{image}": {image}: not found', image=image
    )
    assert missing.sentence.endswith("the registry does not have it")


def test_the_end_of_a_long_message_is_quoted() -> None:
    image = f"hub.example/{'team/' * 20}train@sha256:{'0' * 64}"
    message = f"{HEAD.replace(IMAGE, image)}dial tcp 10.4.0.9:443: connect: no route to host"
    backoff = f'Back-off pulling image "{image}": ErrImagePull: {message}'
    assert len(backoff) > 600
    cause = cause_of("ImagePullBackOff", backoff, image=image)
    assert cause.sentence.endswith(UNREACHED)
    assert cause.evidence[0].text.startswith("Back-off pulling image")
    assert cause.evidence[0].text.endswith("connect: no route to host")


def test_a_secret_that_is_missing_explains_a_refusal_and_no_network() -> None:
    missing = "FailedToRetrieveImagePullSecret"
    refused = cause_of("ErrImagePull", f"{STATUS}401 Unauthorized", missing, secret="hub")
    assert refused.sentence.endswith("; there is no Secret hub in namespace ml")
    assert "create secret docker-registry hub" in refused.fix
    lost = cause_of(
        "ErrImagePull", f"{HEAD}dial tcp: lookup hub.example: no such host", missing, secret="hub"
    )
    assert lost.sentence.endswith(UNREACHED)
    assert NETWORK in lost.fix


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (f"{STATUS}401 Unauthorized", "the registry refuses the login in Secret hub"),
        (
            f"{RESOLVE}pull access denied, repository does not exist or may require authorization",
            "there is no such repository, or the login in Secret hub may not pull it",
        ),
        (
            "toomanyrequests: rate exceeded",
            "the registry's rate limit is reached for the login in Secret hub",
        ),
    ],
)
def test_a_pod_with_a_login_gets_no_advice_to_have_one(answer: str, words: str) -> None:
    cause = cause_of("ErrImagePull", answer, secret="hub")
    assert cause.sentence == f"worker-0 cannot pull {IMAGE}: {words}"
    assert cause.fix.startswith("kubectl -n ml create secret docker-registry hub --docker-server=REGISTRY …")
    assert cause.fix.endswith("--dry-run=client -o yaml | kubectl apply -f -"), "it exists already"
