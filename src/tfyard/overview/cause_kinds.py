"""The kinds of causes that `tfyard why` names: what each means, and what to do.

`tfyard explain why.KIND` prints it, and docs/why.md has all of them."""

from typing import Final

KINDS: Final = {
    "image-pull": (
        "The node cannot pull the image: it does not exist, is private, or the registry is not reached, not "
        "trusted or limits the rate; or it is for another processor. Correct `image`, or name a "
        "`pullSecret`."
    ),
    "no-room": (
        "No node offers what the task asks for, or the nodes are busy; the answer says how much is left and "
        "which jobs hold the rest. Ask for less, or wait."
    ),
    "taint": (
        "Nodes that would fit have a taint that the job does not tolerate. Add `tolerations`, or use other "
        "nodes."
    ),
    "cordoned": "Nodes that would fit are cordoned. Wait, or ask who cordoned them.",
    "node-state": (
        "Nodes that would fit are not ready or have too little memory, disk or processes left. Look at "
        "`kubectl describe nodes`."
    ),
    "selector": (
        "No node has the labels of `nodeSelector` or of the node affinity. Choose labels that nodes have."
    ),
    "affinity": (
        "No node has the pods beside which the task must run, or each has those that it must avoid. Change "
        "the affinity."
    ),
    "spread": "There are too few nodes to spread the tasks as the job demands. Use `spread: prefer`.",
    "volume-zone": (
        "The volume is in a zone, or on a node, where no fitting node is. Choose nodes there, or a class "
        "that waits for the pod."
    ),
    "port-in-use": "The host port is in use on every node. Use another port, or no host network.",
    "no-scheduler": (
        "No scheduler of the name that the pod asks for works here. Correct `schedulerName`, or start it."
    ),
    "no-nodes": "The cluster has no nodes. Wait for its autoscaler, or ask its administrator.",
    "resource-claim": "A ResourceClaim of the pod does not exist. Create it, or correct its name.",
    "unschedulable": "The scheduler finds no node, for the reason that is quoted.",
    "claim-missing": "A PersistentVolumeClaim does not exist. Create it, or give the volume a `size`.",
    "claim-pending": (
        "A PersistentVolumeClaim has no volume yet: its storage class is missing, or nothing provides one. "
        "Name a class that exists."
    ),
    "multi-attach": (
        "The volume is attached to another node, and only one may have it. Use `ReadWriteMany`, or wait "
        "until the other pod has ended."
    ),
    "mount": (
        "The node cannot mount a volume: server, path or permission are quoted. Correct the address, or the "
        "server's exports."
    ),
    "configmap-missing": "A ConfigMap that the pod uses does not exist. Create it, or correct its name.",
    "secret-missing": "A Secret that the pod uses does not exist. Create it, or correct its name.",
    "key-missing": "A ConfigMap or Secret lacks the key that the pod uses. Add the key, or correct its name.",
    "runs-as-root": "The image runs as root, and the pod must not. Set `user`, or use another image.",
    "config": "The container cannot be made from its specification, for the reason that is quoted.",
    "command": (
        "The program is not in the image, is not executable, or is for another processor. Correct `run`."
    ),
    "init-container": "An init container runs or has failed, before the training can start. Look at its log.",
    "sidecar": "A container beside the training one has failed. Its fix is for that container.",
    "not-ready": "A readiness probe fails, so peers do not find the task. Correct the probe, or wait.",
    "quota": (
        "A ResourceQuota leaves too little for the next pod. Ask for less, wait, or ask for a larger quota."
    ),
    "quota-unsaid": (
        "A ResourceQuota accepts only pods that say how much they need. Set `cpu`, `memory` or limits."
    ),
    "limit-range": "A LimitRange of the namespace refuses the amounts. Ask for amounts within its bounds.",
    "webhook": (
        "An admission webhook denies the pods, for the reason that is quoted. Change what it objects to."
    ),
    "webhook-down": (
        "An admission webhook cannot be reached, so nothing can be created. Ask the administrator."
    ),
    "policy": (
        "An admission policy denies the pods, for the reason that is quoted. Change what it objects to."
    ),
    "pod-security": (
        "The namespace accepts only pods of a stricter PodSecurity level. Set the fields that it names."
    ),
    "security-context-constraint": (
        "OpenShift's security context constraints refuse the pods. Ask for one that allows them, or change "
        "the fields that are named."
    ),
    "labels-changed": "A policy changes labels by which the operator finds its objects. Exempt these labels.",
    "undone": "Another client deletes or changes back what the operator writes. Find it, and exempt the job.",
    "service-account": "The ServiceAccount does not exist. Create it, or correct its name.",
    "priority-class": "The PriorityClass does not exist. Create it, or correct its name.",
    "namespace-terminating": "The namespace is being deleted. Submit the job in another one.",
    "name": "The name of the job makes names that Kubernetes refuses. Use a shorter or simpler one.",
    "refused": "The API server refuses an object, for the reason that is quoted.",
    "invalid-spec": "The specification of the job is invalid. Correct the fields that are named.",
    "status-unreadable": "The stored status was edited and cannot be read. The fix opens it in an editor.",
    "no-operator": "No operator works on TFJobs here, or it does not lead. Install or repair it.",
    "managed-by": (
        "Another controller is to run the job (`managedBy`). Start that controller, or remove the field."
    ),
    "operator-permission": "The operator lacks a permission. `tfyard install` or the chart grants it.",
    "suspended": "The job is suspended. `tfyard resume` starts it.",
    "queue": (
        "The job waits in a queue of Kueue. Wait, or look at the queue; the answer has its position if you "
        "may ask for it."
    ),
    "gang": "The gang scheduler waits until there is room for all tasks at once. Wait, or ask for less.",
    "half-running": (
        "Some tasks hold resources and wait for others that have no room. `gang: true` avoids that."
    ),
    "program-error": "The program ended with an exception; the innermost line of your own code is named.",
    "missing-module": "Python does not find a module. Install it, or name it in `requirements`.",
    "missing-file": "The program does not find a file. Correct the path, or send or mount the file.",
    "missing-variable": "The program reads a variable that is not set. Set it by `env` or `secrets`.",
    "permission": (
        "The program may not read or write a path. On a cluster the code is read-only: write to a volume."
    ),
    "volume-not-writable": (
        "The user of the container may not write to the volume. Set `fsGroup` or `user`, or change its owner."
    ),
    "no-space": "A disk or volume is full. Free space, or use a larger volume.",
    "end-of-data": "A dataset ended before the training did. Repeat it, or train for fewer steps.",
    "child-killed": (
        "A child process of the program was killed, mostly for lack of memory. Ask for more `memory`."
    ),
    "unreachable": "A server outside of the job does not answer. Correct the address, or open the way to it.",
    "tensorflow-1": "The program is for TensorFlow 1. `tf1: true` or `--tf1` runs it.",
    "keras-3": "Keras 3 does not train under this strategy of several machines. Use Keras 2 (`tf_keras`).",
    "tf-config": "The program or `env` changes TF_CONFIG. Leave it as it is.",
    "strategy": "The strategy does not fit the roles of the job. Change one of them.",
    "out-of-memory": (
        "The task used more memory than its limit, or than the node has, and was killed. Ask for more "
        "`memory`, or use smaller batches."
    ),
    "gpu-memory": (
        "The memory of the GPU does not suffice. Use smaller batches, or `TF_FORCE_GPU_ALLOW_GROWTH` if "
        "several programs share the GPU."
    ),
    "nan-loss": (
        "The loss became `nan` or `inf`, and the program ended because of it. Use a smaller learning rate, "
        "clip gradients, or look for damaged data."
    ),
    "address-in-use": (
        "A port that the program listens on is in use. End the other program, or use another port."
    ),
    "probe": "A liveness or startup probe failed, so the kubelet killed the task. Give the probe more time.",
    "killed": "The program got SIGKILL; if there is no other trace, it was mostly for lack of memory.",
    "crash": "The program crashed in native code. `PYTHONFAULTHANDLER: 1` in `env` shows the line.",
    "abort": "A library ended the program, for the reason that is quoted.",
    "illegal-instruction": (
        "The processor lacks an instruction of the program, such as AVX. Use other nodes or an image for "
        "this processor."
    ),
    "stopped": "The program ended by a signal that asks it to end.",
    "deadline": "The job ran longer than its deadline. Raise it, or remove it.",
    "retries": "The tasks failed more often than the job allows; the last ends are shown.",
    "failed": "The job has failed, by the words of the operator that ran it.",
    "deletion": "The job or a pod is deleted, and a finalizer holds it. Find who must remove that.",
    "terminating": "A pod is deleted and still ends, as long as its grace period. Wait.",
    "peer-lost": "It failed because another task was taken away. All start again, and no retry is used.",
    "evicted": "The task was evicted from its node. It runs again, and no retry is used.",
    "drained": "The node was drained. The task runs again, and no retry is used.",
    "preempted": "A pod of higher priority needed the room. The task runs again, and no retry is used.",
    "node-lost": "The node does not answer any more. The task runs again, and no retry is used.",
    "node-shutdown": "The node was shut down. The task runs again, and no retry is used.",
    "node-rebooted": "The node was rebooted. The task runs again, and no retry is used.",
    "node-refused": (
        "The node refused the pod that was bound to it. The task runs again, and no retry is used."
    ),
    "deleted": "The pod was deleted. The task runs again, and no retry is used.",
    "restarted": "Somebody restarted the task. It runs again, and no retry is used.",
    "cut-off": "Workers still ran when the first one ended the job. `success: all-workers` waits for all.",
    "peers": (
        "The task does not reach a peer: it does not run, or Istio, a NetworkPolicy or DNS is between them."
    ),
    "nccl": "NCCL does not reach the GPUs of a peer, for the reason that is quoted.",
    "stalled": (
        "The job has printed no line for longer than its `stall` allows. `tfyard why JOB --stacks` shows "
        "what the programs are doing."
    ),
    "no-progress": (
        "The job has printed no line for ten minutes. `tfyard why JOB --stacks` shows what it is doing."
    ),
    "interrupted": "The run on this machine was ended by Ctrl-C or a signal. `tfyard rerun` starts it again.",
}
