"""All situations that tests make happen, as one table: what happens, what `tfyard why` says, the fix, the exit
code, and where it was made. docs/why.md is written from it (`python -m tools.why_page`).

What is said stands beside what makes the situation, and the test that makes it asserts it. Here is what each of
them is, in words. A situation without words, and words without a situation, fail test_proofs.py.
"""

from collections.abc import Iterator

from msgspec import Struct

from tests.cluster import test_image_pulls, test_why
from tests.e2e import broken_programs
from tests.remote import admission, situations
from tests.remote.reading import test_fixes, test_scheduling_causes

SERVER, SCRIPTED, DEV, NODE, LOCAL = "server", "scripted", "dev", "node", "local"
"""Where: by a real API server or scheduler; with a kubelet's words that tests wrote; on `tfyard dev`; on a real
kubelet; by real processes on this machine."""


class Row(Struct, frozen=True, kw_only=True):
    situation: str
    kind: str
    sentence: str
    fix: str
    code: int
    where: tuple[str, ...]


OF_SERVER = {
    "quota": "a ResourceQuota that the next pod would exceed",
    "unsaid": "a ResourceQuota for limits, and a job without any",
    "priority": "a PriorityClass that does not exist",
    "account": "a ServiceAccount that does not exist",
    "taken": "a pod of somebody else has the name of a task's pod",
    "edited": "a job is scaled beyond what TF_CONFIG can hold",
    "nonsense": "the stored status of a job was edited, and cannot be read",
    "paused": "a job that is suspended",
    "queued": "a job for a queue of Kueue, which does not run",
    "elsewhere": "a job for another controller (managedBy)",
    "denied": "an admission webhook that denies pods",
    "hooked": "an admission webhook whose service does not answer",
    "policed": "a ValidatingAdmissionPolicy",
    "secure": "a namespace with PodSecurity restricted",
    "ranged": "a LimitRange",
    "going": "a namespace that is being deleted",
    "offers": "a resource that no node offers",
    "large": "a task that is larger than any node",
    "busy": "nodes on which others hold what a task asks for",
    "tainted": "a node with a taint that a job does not tolerate",
    "closed": "a node that is cordoned",
    "sick": "a node that is not ready",
    "label": "a nodeSelector that no node fits",
    "attracted": "a node affinity that no node fits",
    "apart": "tasks that must be on different nodes, of which there are too few",
    "spread": "tasks that must be spread over more nodes than there are",
    "beside": "tasks that must run beside pods that do not exist",
    "device": "a ResourceClaim that does not exist",
    "classless": "a ResourceClaim whose DeviceClass does not exist",
    "shared": "a claim for a single pod (ReadWriteOncePod), and two tasks",
    "nearby": "a claim that waits for its first pod, and no volume that fits",
    "port": "a host port that is in use",
    "missing": "a claim that does not exist",
    "unbound": "a claim of a StorageClass that does not exist",
    "plain": "a claim without a class, and no default class",
    "far": "a volume on a node that does not exist",
    "unseen": "a scheduler that does not run",
    "gated": "pods that Kueue holds, and Kueue does not run",
    "low": "a pod that the scheduler preempts",
    "doomed": "a node that gets a NoExecute taint",
    "silent": "a node that no longer answers",
    "late": "a job that runs longer than its deadline",
    "cut": "a worker that still runs when the first one ends the job",
    "drained": "a pod that is being evicted through the API",
    "replaced": "a pod that was evicted through the API, and runs again",
    "removed": "a pod that was deleted, and runs again",
    "ending": "a pod that was deleted, and takes its time to end",
    "again": "a job whose name another one had, a pod of which takes its time to end",
    "vanished": "a pod that was deleted without a grace period, and runs again",
}
OF_SCRIPT = {
    "admission": "a queue of Kueue without quota for a job",
    "openshift": "a pod that no SecurityContextConstraint of OpenShift allows",
    "pull": "an image that the registry does not have",
    "private": "a private image, and a pull Secret that does not exist",
    "misnamed": "an image with a capital letter in its name",
    "never": "an image that is not on the node, with imagePullPolicy Never",
    "secret": "a Secret that does not exist, for a variable",
    "settings": "a ConfigMap that does not exist, for variables",
    "key": "a Secret without the key of a variable",
    "mounted": "a Secret that does not exist, for a volume",
    "root": "an image that runs as root, and runAsNonRoot",
    "reserved": "a container runtime that has the name of the container already",
    "mount": "an NFS server that does not allow the mount",
    "attached": "a volume that another node has",
    "half": "one of two tasks runs, and the other cannot pull its image",
    "command": "a command that is not in the image, while its container is created",
    "started": "a command that is not in the image",
    "allowed": "a command that is not executable",
    "shell": "a command in a shell that is not in the image",
    "fails": "a program that raises an exception",
    "partly": "a task that fails after its job has succeeded",
    "memory": "a container above its memory limit",
    "loop": "a program that fails again and again",
    "retries": "a program that fails until its retries are used up",
    "evicted": "a node that is short of disk space",
    "preempted": "a pod that is being preempted",
    "lost": "a pod whose node was deleted",
    "rebooted": "a node that was rebooted",
    "admitted": "a node that does not admit a pod",
    "shutdown": "a node that shuts down",
}
OF_KUBELET = {
    "command": "a command that is not in the image",
    "loops": "a command that is not in the image, with restarts",
    "shell": "a command in a shell that is not in the image",
    "exits": "`exit 127` in a script",
    "allowed": "a command that is not executable",
    "memory": "a program above its memory limit",
    "liveness": "a liveness probe that fails",
    "again": "a liveness probe that fails again and again",
    "startup": "a startup probe that fails",
    "readiness": "a readiness probe that fails",
    "prepared": "an init container that fails",
    "hanging": "an init container that does not end",
    "feeder": "a container beside the training one that fails",
    "preparing": "an init container that fails again and again",
    "preparation": "an init container whose command is not in the image",
    "secret": "a Secret that does not exist, for a variable",
    "settings": "a ConfigMap that does not exist, for variables",
    "key": "a Secret without the key of a variable",
    "mounted": "a Secret that does not exist, for a volume",
    "root": "an image that runs as root, and runAsNonRoot",
    "full": "a volume that grows above its sizeLimit",
}
OF_NODE = {
    "unauthorized": "a registry that answers 401",
    "forbidden": "a registry that answers 403",
    "secretless": "a registry that answers 401, and a pull Secret that does not exist",
    "absent": "a registry that answers 404",
    "limited": "a registry that answers 429",
    "broken": "a registry that answers 500",
    "unreachable": "a registry that does not exist",
    "never": "an image that is not on the node, with imagePullPolicy Never",
}
WORDS = {(SERVER,): OF_SERVER, (SCRIPTED,): OF_SCRIPT, (DEV, NODE): OF_KUBELET, (NODE,): OF_NODE}
"""Where -> name of a situation -> what it is."""
ON_PLANE = {
    each.name: each
    for each in (
        *(*situations.REFUSED, *situations.KUBELETS, *admission.SITUATIONS),
        *test_scheduling_causes.SITUATIONS.values(),
    )
}
ON_KUBELETS = {each.name: each for each in test_why.SITUATIONS}
PULLED = {each.name: each.situation for each in test_image_pulls.PULLS}
PROGRAMS = (*broken_programs.PROGRAMS, *broken_programs.BEGINNERS, *broken_programs.TENSORFLOW)


def rows() -> Iterator[Row]:
    made = {(SERVER,): ON_PLANE, (SCRIPTED,): ON_PLANE, (DEV, NODE): ON_KUBELETS, (NODE,): PULLED}
    for where, words in WORDS.items():
        for name, text in words.items():
            each = made[where][name]
            said = {"kind": each.kind, "sentence": each.words, "fix": each.fix, "code": each.code}
            yield Row(situation=text, where=where, **said)
    for told in test_fixes.TOLD.values():
        said = {"kind": told.kind, "sentence": told.words, "fix": told.fix, "code": told.code}
        yield Row(situation=told.when, where=(SERVER,), **said)
    for broken in PROGRAMS:
        said = {"kind": broken.kind, "sentence": broken.sentence, "fix": broken.fix, "code": 1}
        yield Row(situation=broken.when, where=(LOCAL,), **said)


def only_in_our_words() -> list[str]:
    """Kinds that only tests with words of their own have made."""
    real = {row.kind for row in rows() if row.where != (SCRIPTED,)}
    return sorted({row.kind for row in rows() if row.kind} - real)
