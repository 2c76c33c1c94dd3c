"""Causes of requests that the apiserver refused: a quota, a policy, a missing account, a name."""

import re
from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from tfyard.model.quantity import amount
from tfyard.overview.cause import Cause, Quote, cut
from tfyard.overview.causes import pod_security
from tfyard.overview.evidence import Evidence
from tfyard.planner import reasons

LONGEST_REASON = 900
"""Characters of a refusal's reason: PodSecurity names each violation of each container."""
BLOCKED, INVALID, NAME_NOT_FREE = "Blocked", "InvalidSpec", "NameNotYetFree"
_PAIR = r"([\w./-]+)=([\w.]+)"
_HTTP_CODE = r" \(\d{3} \w*\)$"
"""End of the operator's messages about refusals, which explains nothing."""
_QUOTA = (
    r"exceeded quota: (?P<quota>[^\s,]+), requested: (?P<asked>\S+), used: (?P<used>\S+),"
    r" limited: (?P<limit>\S+?)(?:\s|$)"
)
_WHO_CHANGES = (
    "kubectl get mutatingwebhookconfigurations, and since Kubernetes 1.36 mutatingadmissionpolicies"
)


class Refusal(Struct, frozen=True):
    """A kind of refusal, with its cause and fix. Both texts may use named groups of the pattern."""

    pattern: str
    kind: str
    sentence: str
    fix: str = ""


REFUSALS = (
    Refusal(
        r"unable to validate against any security context constraint: (?P<what>.*)",
        "security-context-constraint",
        "no SecurityContextConstraint of OpenShift allows the pods: {what}",
        "oc adm policy add-scc-to-user anyuid -z {account} -n {namespace}",
    ),
    Refusal(
        r"failed quota: (?P<quota>\S+?): must specify (?P<what>[\w./,;: -]+)",
        "quota-unsaid",
        "quota {quota} accepts only pods that say how much they need: {what}",
        "job file: `cpu: 1` and `memory: 4Gi`",
    ),
    Refusal(
        r'admission webhook "(?P<webhook>[^"]+)" denied the request:? ?(?P<what>.*)',
        "webhook",
        "the admission webhook {webhook} does not allow the pods: {what}",
    ),
    Refusal(
        r'failed calling webhook "(?P<webhook>[^"]+)": (?P<what>.*)',
        "webhook-down",
        "the admission webhook {webhook} cannot be reached, so nothing can be created: {what}",
        "ask the cluster's administrator: its service does not answer",
    ),
    Refusal(
        r"ValidatingAdmissionPolicy '(?P<policy>[^']+)' with binding '[^']+' denied request: (?P<what>.*)",
        "policy",
        "the admission policy {policy} does not allow the pods: {what}",
    ),
    Refusal(
        r"admission policy or webhook (?P<what>changed the labels of .*); it must keep them",
        "labels-changed",
        "an admission policy or webhook {what}: the operator finds its pods and Services by these labels",
        f"exempt them: {_WHO_CHANGES}",
    ),
    Refusal(
        r"(?P<what>.* lost its annotation \S+) when it was created",
        "labels-changed",
        "{what}: an admission policy or webhook removes it",
        f"exempt it: {_WHO_CHANGES}",
    ),
    Refusal(
        r"(?P<what>.* is (?:deleted whenever it is created|changed back each time)): another client",
        "undone",
        "{what} by another client of the cluster",
        "find it in the API server's audit log; clean-up jobs and GitOps controllers do that",
    ),
    Refusal(
        r'violates PodSecurity "(?P<level>[^"]+)": (?P<what>.*)',
        "pod-security",
        "the namespace accepts only pods of PodSecurity {level}: {what}",
        "{overlay}",
    ),
    Refusal(
        r"error looking up service account (?P<where>[\w.-]+)/(?P<account>[\w.-]+)",
        "service-account",
        "there is no ServiceAccount {account} in namespace {where}",
        "kubectl -n {where} create serviceaccount {account}",
    ),
    Refusal(
        r"no PriorityClass with name (?P<name>\S+) was found",
        "priority-class",
        "there is no PriorityClass {name}",
        "kubectl get priorityclasses",
    ),
    Refusal(
        r"(?P<which>m\w+ (?:[\w./-]+ usage per \w+|\w+ to \w+ ratio per \w+) is [^,]+), but (?P<what>[^\n(]+)",
        "limit-range",
        "a LimitRange of the namespace says: {which}, but {what}",
        "kubectl -n {namespace} describe limitranges",
    ),
    Refusal(
        r"cannot set blockOwnerDeletion",
        "operator-permission",
        "the operator may not own the objects of a job: it lacks the permission on tfjobs/finalizers",
        "tfyard install",
    ),
    Refusal(
        r'[Uu]ser "(?P<user>[^"]+)" cannot (?P<verb>\w+) resource "(?P<what>[^"]+)"',
        "operator-permission",
        "the operator ({user}) may not {verb} {what}",
        "tfyard install",
    ),
    Refusal(
        r"because it is being terminated",
        "namespace-terminating",
        "the namespace {namespace} is being deleted",
        "submit the job in another namespace",
    ),
    Refusal(
        r"pod (?P<pod>\S+) is still being deleted: node (?P<node>\S+) is not ready",
        "node-lost",
        "the pod {pod} is deleted, and its node {node} does not answer: whether it still runs is unknown",
        "if that machine is off for good: kubectl delete node {node}",
    ),
    Refusal(
        r"must be no more than 63|must be no more than 253|a DNS-1035 label|a lowercase RFC 1123",
        "name",
        "the name {job} cannot be used for pods and Services: {message}",
        "give the job a shorter name of lower-case letters, digits and '-'",
    ),
)


def find(evidence: Evidence, now: datetime) -> Iterator[Cause]:  # noqa: ARG001
    if evidence.status_problem:
        yield _unreadable(evidence)
    failure = evidence.status.failure
    if failure is not None and failure.cause == INVALID:
        quote = Quote("apiserver", cut(failure.message), evidence.status.completion_time)
        yield _invalid(quote, "correct the file and submit it again")
    elif not evidence.status.is_finished:
        yield from _blocked(evidence)


def _invalid(quote: Quote, fix: str) -> Cause:
    return Cause(
        kind="invalid-spec", sentence=f"its spec is invalid: {quote.text}", fix=fix, evidence=(quote,)
    )


def _blocked(evidence: Evidence) -> Iterator[Cause]:
    blocked = evidence.status.condition(BLOCKED)
    if blocked is not None and blocked.status == "True":
        quote = Quote("apiserver", cut(blocked.message), blocked.last_transition_time)
        if blocked.reason == INVALID:
            yield _invalid(quote, f"correct it: kubectl -n {evidence.namespace} edit tfjob {evidence.name}")
        elif not is_of_queue(blocked.reason) and not (blocked.reason == NAME_NOT_FREE and evidence.former):
            yield of_message(evidence, blocked.message, quote)
    elif not evidence.tasks:
        for event in evidence.events_of("TFJob", evidence.name, evidence.uid):
            if event.type == "Warning" and event.reason.startswith("FailedCreate"):
                yield of_message(evidence, event.message, Quote("event", cut(event.message), event.at))
                return


def is_of_queue(reason: str) -> bool:
    """Whether a job that is blocked for this reason waits in a queue; run_policy.py explains that."""
    waits = (reasons.GROUP_NOT_SEEN, reasons.GROUP_PENDING, reasons.GROUP_DELETING, reasons.QUEUE_TOO_SMALL)
    return reason in waits


def of_message(evidence: Evidence, message: str, quote: Quote) -> Cause:
    message = re.sub(_HTTP_CODE, "", message)
    if quota := re.search(_QUOTA, message):
        return _over_quota(evidence, quota, quote)
    for refusal in REFUSALS:
        if match := re.search(refusal.pattern, message):
            words = {name: cut(text or "", LONGEST_REASON) for name, text in match.groupdict().items()}
            words |= {"namespace": evidence.namespace, "job": evidence.name, "message": cut(message, 300)}
            words |= {"overlay": pod_security.fix(match[0].partition(": ")[2], _init_containers(evidence))}
            words.setdefault("account", _account(evidence))
            fix = _filled(refusal.fix, words)
            return Cause(
                kind=refusal.kind, sentence=_filled(refusal.sentence, words), fix=fix, evidence=(quote,)
            )
    return Cause(kind="refused", sentence=f"it is blocked: {cut(message)}", evidence=(quote,))


def _init_containers(evidence: Evidence) -> Iterator[str]:
    for role in evidence.roles:
        yield from (each["name"] for each in (role.template.get("spec") or {}).get("initContainers") or [])


def _account(evidence: Evidence) -> str:
    """Name of the ServiceAccount of the job's pods."""
    specs = ((role.template.get("spec") or {}) for role in evidence.roles)
    return next(
        (str(spec["serviceAccountName"]) for spec in specs if spec.get("serviceAccountName")), "default"
    )


def _filled(text: str, words: dict[str, str]) -> str:
    """The text with its words filled in; str.format cannot be used, because the texts have other braces."""
    return re.sub(r"\{(\w+)\}", lambda mark: words.get(mark[1], mark[0]), text)


def _over_quota(evidence: Evidence, match: "re.Match[str]", quote: Quote) -> Cause:
    asked, used, limit = (dict(re.findall(_PAIR, match[part])) for part in ("asked", "used", "limit"))
    parts = [_too_much(name, asked[name], used.get(name, "0"), limit.get(name, "0")) for name in asked]
    return Cause(
        kind="quota",
        sentence=f"quota {match['quota']} leaves too little: {'; '.join(filter(None, parts))}",
        fix=f"kubectl -n {evidence.namespace} describe quota {match['quota']}",
        evidence=(quote,),
    )


def _too_much(name: str, asked: str, used: str, limit: str) -> str:
    need, has, most = (amount(text) or 0 for text in (asked, used, limit))
    if need + has <= most:
        return ""
    return f"the next pod asks for {asked} of {name}, and {used} of {limit} are in use"


def _unreadable(evidence: Evidence) -> Cause:
    fix = f"kubectl -n {evidence.namespace} edit tfjob {evidence.name} --subresource=status"
    sentence = (
        f"its stored status cannot be read, so the operator does nothing: {cut(evidence.status_problem)}"
    )
    return Cause(
        kind="status-unreadable",
        sentence=sentence,
        fix=fix,
        evidence=(Quote("apiserver", cut(evidence.status_problem)),),
    )
