# Runs after the training: deletes the Jobs that would run forever. TFYARD_END (JSON) says which, and when.
#   end.py EXIT_CODE
from __future__ import annotations

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from typing import Any

instructions = json.loads(os.environ["TFYARD_END"])
code = int(sys.argv[1])
account = os.environ.get("TFYARD_ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount")
server = os.environ.get("TFYARD_SERVER") or "https://{}:{}".format(
    os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
)


def ask(method: str, job: str, body: Any = None) -> Any:
    with open(account + "/token") as file:
        headers = {"Authorization": "Bearer " + file.read(), "Content-Type": "application/json"}
    address = "{}/apis/batch/v1/namespaces/{}/jobs/{}".format(server, instructions["namespace"], job)
    request = urllib.request.Request(
        address, json.dumps(body).encode() if body else None, headers, method=method
    )
    context = ssl.create_default_context(cafile=account + "/ca.crt") if server.startswith("https") else None
    for attempt in range(6):
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            if (error.code < 500 and error.code != 429) or attempt == 5:
                raise
        except OSError:
            if attempt == 5:
                raise
        time.sleep(2**attempt)
    return None


def is_finished(job: Any) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or []
    return any(c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in conditions)


def is_permanent(code: int) -> bool:
    spans = [part.partition("-") for part in instructions["permanent"].split(",") if part]
    return any(int(first) <= code <= int(last or first) for first, _, last in spans)


if os.environ["TASK_INDEX"] != str(instructions["index"]):
    sys.exit(0)  # another task ends the job

if code != 0 and not is_permanent(code):
    sys.exit(0)  # this task will be restarted

while code == 0 and instructions.get("wait"):
    job = ask("GET", instructions["wait"]["job"]) or {}
    if (job.get("status") or {}).get("succeeded", 0) >= instructions["wait"]["others"] or is_finished(job):
        break
    time.sleep(5)

for name in instructions["jobs"]:
    try:
        found = ask("GET", name)
        if found is None or (is_finished(found) and not instructions["all"]):
            continue
        ask("DELETE", name, {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"})
        print("the training has ended: deleted", name, flush=True)
    except OSError as error:
        message = "the training has ended, but {} could not be deleted: {}".format(name, error)
        print(message, file=sys.stderr, flush=True)
