"""Whoever stands between a job and its pods on an API server: webhooks, policies, strict namespaces, Kueue."""

import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from aiohttp import web

from tests.controller.cluster import Bench
from tests.remote.situations import Manifest, Situation, Step, is_refused, limits, selecting
from tfyard.controlplane.certificates import CertificateAuthority
from tfyard.kube import Client, NotFound, Resource, requests
from tfyard.kube.requests import TFJOBS
from tfyard.model.names import JOB_NAME, QUEUE_NAME
from tfyard.testing import builders, eventually

ADMISSION = "admissionregistration.k8s.io"
WEBHOOKS = Resource(ADMISSION, "v1", "validatingwebhookconfigurations", namespaced=False)
POLICIES = Resource(ADMISSION, "v1", "validatingadmissionpolicies", namespaced=False)
BINDINGS = Resource(ADMISSION, "v1", "validatingadmissionpolicybindings", namespaced=False)
LIMIT_RANGES = Resource("", "v1", "limitranges")
WORKLOADS = Resource("kueue.x-k8s.io", "v1beta1", "workloads")
PODS_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
CAPACITY = (
    "couldn't assign flavors to pod set worker: insufficient unused quota for nvidia.com/gpu, 4 more needed"
)

OPENSHIFT = (
    'is forbidden: unable to validate against any security context constraint: [provider "anyuid": Forbidden: not'
    ' usable by user or serviceaccount, provider "restricted-v2": .containers[0].runAsUser: Invalid value: 0: must'
    " be in the ranges: [1000720000, 1000729999]]"
)
"""Its admission is part of its API server; here a webhook says its words."""
DENIED = {"denied": "images must be signed", "openshift": OPENSHIFT}


async def wait_for_quota(yard: Bench) -> None:
    """The job is there before Kueue's Workload, which belongs to it."""
    uid = (await yard.get("admission"))["metadata"]["uid"]
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "admission", "uid": uid}
    path = WORKLOADS.path(yard.namespace)
    made = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload"}
    names = {"name": "tfjob-admission", "ownerReferences": [owner]}
    await yard.client.send(requests.create(path, {**made, "metadata": names}))
    said = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": CAPACITY}
    status = {"conditions": [{**said, "lastTransitionTime": "2024-11-16T03:00:00Z"}]}
    await yard.client.send(requests.patch(f"{path}/tfjob-admission/status", {"status": status}))


def account(name: str) -> Step:
    async def make(yard: Bench) -> None:
        path = Resource("", "v1", "serviceaccounts").path(yard.namespace)
        await yard.client.send(requests.create(path, {"metadata": {"name": name}}))

    return make


async def delete_the_namespace(yard: Bench) -> None:
    """No controller runs that would finish it."""
    await yard.phase("Suspended", "going")
    await yard.client.send(requests.delete(requests.NAMESPACES.path(name=yard.namespace)))
    resumed = {"spec": {"runPolicy": {"suspend": False}}}
    await yard.client.send(requests.patch(TFJOBS.path(yard.namespace, "going"), resumed))


SITUATIONS = (
    Situation(
        name="denied",
        kind="webhook",
        words=("the admission webhook denies.example.com does not allow the pods: images must be signed"),
    ),
    Situation(
        name="openshift",
        kind="security-context-constraint",
        words=(
            'no SecurityContextConstraint of OpenShift allows the pods: [provider "anyuid": '
            'Forbidden: not usable by user or serviceaccount, provider "restricted-v2": '
            ".containers[0].runAsUser: Invalid value: 0: must be in the ranges: [1000720000, "
            "1000729999]]"
        ),
        fix="oc adm policy add-scc-to-user anyuid -z trainers -n NAMESPACE",
        before=account("trainers"),
        job={"serviceAccountName": "trainers", "securityContext": {"runAsUser": 0}},
    ),
    Situation(
        name="hooked",
        kind="webhook-down",
        words=(
            "the admission webhook down.example.com cannot be reached, so nothing can be created: "
            'failed to call webhook: Post "https://127.0.0.1:1/?timeout=10s": dial tcp '
            "127.0.0.1:1: connect: connection refused"
        ),
        fix="ask the cluster's administrator: its service does not answer",
    ),
    Situation(
        name="policed",
        kind="policy",
        words="the admission policy NAMESPACE does not allow the pods: no tag latest",
        job={"container": {"image": "example/train:latest"}},
    ),
    Situation(
        name="secure",
        kind="pod-security",
        words=(
            "the namespace accepts only pods of PodSecurity restricted:latest: "
            'allowPrivilegeEscalation != false (container "tensorflow" must set '
            "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "
            '"tensorflow" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != '
            'true (pod or container "tensorflow" must set securityContext.runAsNonRoot=true), '
            'seccompProfile (pod or container "tensorflow" must set '
            'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
        ),
        fix=(
            "TFJob: `template: {spec: {securityContext: {runAsNonRoot: true, runAsUser: 1000, "
            "seccompProfile: {type: RuntimeDefault}}, containers: [{name: tensorflow, "
            "securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}`"
        ),
        place="strict",
    ),
    Situation(
        name="ranged",
        kind="limit-range",
        words=(
            "a LimitRange of the namespace says: maximum memory usage per Container is 1Gi, but limit is 2Gi"
        ),
        fix="kubectl -n NAMESPACE describe limitranges",
        place="strict",
        job={"container": limits(memory="2Gi")},
    ),
    Situation(
        name="going",
        kind="namespace-terminating",
        words="the namespace NAMESPACE is being deleted",
        place="going",
        job={"policy": {"suspend": True}},
        after=delete_the_namespace,
        fix="submit the job in another namespace",
    ),
    Situation(
        name="admission",
        kind="queue",
        words=(
            "it waits in queue team: couldn't assign flavors to pod set worker: insufficient "
            "unused quota for nvidia.com/gpu, 4 more needed"
        ),
        fix="kubectl -n NAMESPACE describe workload tfjob-admission",
        job={"policy": {"suspend": True}, "labels": {QUEUE_NAME: "team"}},
        after=wait_for_quota,
    ),
)


# --- strict namespaces


async def make_strict(client: Client, namespace: str) -> None:
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    await client.send(requests.patch(requests.NAMESPACES.path(name=namespace), label))
    most = {"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]}
    await client.send(
        requests.create(LIMIT_RANGES.path(namespace), {"metadata": {"name": "most"}, "spec": most})
    )


# --- webhooks and policies


async def deny(request: web.Request) -> web.Response:
    review = await request.json()
    message = DENIED[review["request"]["object"]["metadata"]["labels"][JOB_NAME]]
    answer = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": message}}
    body = {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": answer}
    response = web.json_response(body)
    response.force_close()  # a TLS connection that is kept would outlive the loop
    return response


@asynccontextmanager
async def webhook(folder: Path) -> AsyncIterator[Manifest]:
    """A server that denies everything; how a client finds it."""
    authority = CertificateAuthority()
    pair = authority.server("webhook", ["127.0.0.1"])
    (folder / "webhook.pem").write_bytes(pair.certificate + pair.key)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(folder / "webhook.pem")
    application = web.Application()
    application.router.add_post("/", deny)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        url = f"https://127.0.0.1:{runner.addresses[0][1]}/"
        yield {"url": url, "caBundle": base64.b64encode(authority.pem).decode()}
    finally:
        await runner.cleanup()


def hook(name: str, client_config: Manifest, *of_jobs: str) -> Manifest:
    return {
        "name": name,
        "clientConfig": client_config,
        "rules": [PODS_RULE],
        "objectSelector": selecting(*of_jobs),
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


@asynccontextmanager
async def guards(client: Client, namespace: str, folder: Path) -> AsyncIterator[None]:
    """Of the whole cluster, for the pods of a few jobs only; they go with the block."""
    async with webhook(folder) as found:
        hooks = [
            hook("denies.example.com", found, *DENIED),
            hook("down.example.com", {"url": "https://127.0.0.1:1/"}, "hooked"),
        ]
        matches = {"resourceRules": [PODS_RULE], "objectSelector": selecting("policed")}
        tag = {"expression": "!object.spec.containers.exists(c, c.image.endsWith(':latest'))"}
        policy = {"matchConstraints": matches, "validations": [{**tag, "message": "no tag latest"}]}
        binding = {"policyName": namespace, "validationActions": ["Deny"]}
        made = [(WEBHOOKS, {"webhooks": hooks}), (POLICIES, {"spec": policy}), (BINDINGS, {"spec": binding})]
        for resource, fields in made:
            await client.send(requests.create(resource.path(), {"metadata": {"name": namespace}, **fields}))
        try:
            for name in (*DENIED, "hooked", "policed"):
                pod = builders.pod(f"try-{name}", {JOB_NAME: name})
                pod["metadata"]["namespace"] = namespace
                pod["spec"]["containers"][0]["image"] = "example/train:latest"
                await eventually(partial(is_refused, client, pod))
            yield
        finally:
            for resource, _ in made:
                await client.send(requests.delete(resource.path(name=namespace)))


# --- Kueue


def kueue() -> Manifest:
    """The definition of its Workloads, as far as jobs need it."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": WORKLOADS.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": "workloads", "singular": "workload", "kind": "Workload", "listKind": "WorkloadList"}
    spec = {"group": WORKLOADS.group, "scope": "Namespaced", "names": names, "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"workloads.{WORKLOADS.group}"},
        "spec": spec,
    }


@asynccontextmanager
async def workloads(client: Client) -> AsyncIterator[None]:
    await builders.install_crds(client, kueue())
    try:
        yield
    finally:
        path = requests.CRDS.path(name=kueue()["metadata"]["name"])
        await client.send(requests.delete(path))
        await eventually(partial(_is_gone, client, path))


async def _is_gone(client: Client, path: str) -> None:
    with suppress(NotFound):
        await client.send(requests.get(path))
        raise AssertionError(f"{path} is still there")
