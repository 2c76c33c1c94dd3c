"""What the apiserver did not accept: a quota, a policy, a missing account, a name. Its answer is the evidence."""

import re
from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from tfyard.model.quantity import amount
from tfyard.overview.cause import Cause, Quote, cut
from tfyard.overview.evidence import Evidence

BLOCKED, INVALID = "Blocked", "InvalidSpec"
_PAIR = r"([\w./-]+)=([\w.]+)"
_HTTP_CODE = r" \(\d{3} \w*\)$"
"""At the end of what the operator wrote down; it says nothing more."""
_QUOTA = (
    r"exceeded quota: (?P<quota>[^\s,]+), requested: (?P<asked>\S+), used: (?P<used>\S+),"
    r" limited: (?P<limit>\S+?)(?:\s|$)"
)


class Refusal(Struct, frozen=True):
    """How a refusal reads, and what follows from it. Named groups may be used in both texts."""

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
        r'admission webhook "(?P<who>[^"]+)" denied the request:? ?(?P<what>.*)',
        "webhook",
        "the admission webhook {who} does not allow the pods: {what}",
    ),
    Refusal(
        r'failed calling webhook "(?P<who>[^"]+)": (?P<what>.*)',
        "webhook-down",
        "the admission webhook {who} cannot be reached, so nothing can be created: {what}",
        "ask the cluster's administrator: its service does not answer",
    ),
    Refusal(
        r"ValidatingAdmissionPolicy '(?P<who>[^']+)' with binding '[^']+' denied request: (?P<what>.*)",
        "policy",
        "the admission policy {who} does not allow the pods: {what}",
    ),
    Refusal(
        r'violates PodSecurity "(?P<who>[^"]+)": (?P<what>.*)',
        "pod-security",
        "the namespace accepts only pods of PodSecurity {who}: {what}",
        "job file: `overlay: {spec: {securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type:"
        " RuntimeDefault}}}}`, and what else is named",
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
        r'[Uu]ser "(?P<who>[^"]+)" cannot (?P<verb>\w+) resource "(?P<what>[^"]+)"',
        "operator-permission",
        "the operator ({who}) may not {verb} {what}",
        "tfyard install",
    ),
    Refusal(
        r"because it is being terminated",
        "namespace-terminating",
        "the namespace {namespace} is being deleted",
        "submit the job in another namespace",
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
        elif not is_of_queue(blocked.reason):
            yield of_message(evidence, blocked.message, quote)
    elif not evidence.tasks:
        for event in evidence.events_of("TFJob", evidence.name):
            if event.type == "Warning" and event.reason.startswith("FailedCreate"):
                yield of_message(evidence, event.message, Quote("event", cut(event.message), event.at))
                return


def is_of_queue(reason: str) -> bool:
    """Whether a job that is blocked for this reason waits for its turn; queue.py explains that."""
    from tfyard.planner import reasons  # brings the whole planner, which is slow to import

    waits = (reasons.GROUP_NOT_SEEN, reasons.GROUP_PENDING, reasons.GROUP_DELETING, reasons.QUEUE_TOO_SMALL)
    return reason in waits


def of_message(evidence: Evidence, message: str, quote: Quote) -> Cause:
    message = re.sub(_HTTP_CODE, "", message)
    if quota := re.search(_QUOTA, message):
        return _over_quota(evidence, quota, quote)
    for refusal in REFUSALS:
        if found := re.search(refusal.pattern, message):
            words = {name: cut(text or "", 300) for name, text in found.groupdict().items()}
            words |= {"namespace": evidence.namespace, "job": evidence.name, "message": cut(message, 300)}
            words.setdefault("account", _account(evidence))
            fix = _filled(refusal.fix, words)
            return Cause(
                kind=refusal.kind, sentence=_filled(refusal.sentence, words), fix=fix, evidence=(quote,)
            )
    return Cause(kind="refused", sentence=f"it is blocked: {cut(message)}", evidence=(quote,))


def _account(evidence: Evidence) -> str:
    """The ServiceAccount of its pods."""
    specs = ((role.template.get("spec") or {}) for role in evidence.roles)
    return next(
        (str(spec["serviceAccountName"]) for spec in specs if spec.get("serviceAccountName")), "default"
    )


def _filled(text: str, words: dict[str, str]) -> str:
    """Not by str.format: the texts have braces of their own."""
    return re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], found[0]), text)


def _over_quota(evidence: Evidence, found: "re.Match[str]", quote: Quote) -> Cause:
    asked, used, limit = (dict(re.findall(_PAIR, found[part])) for part in ("asked", "used", "limit"))
    parts = [_too_much(name, asked[name], used.get(name, "0"), limit.get(name, "0")) for name in asked]
    return Cause(
        kind="quota",
        sentence=f"quota {found['quota']} leaves too little: {'; '.join(filter(None, parts))}",
        fix=f"kubectl -n {evidence.namespace} describe quota {found['quota']}",
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
