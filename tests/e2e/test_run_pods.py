"""How a pod becomes processes: what the kubelet would do, and what a machine does instead."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import Yard, wait_until

pytestmark = pytest.mark.processes

TFJOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {{name: t}}
spec:
  tfReplicaSpecs:
    Worker:
      template:
        metadata: {{labels: {{team: vision}}}}
        spec:
{spec}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings}}
data: {{rate: "0.5", "model.txt": deep}}
---
apiVersion: v1
kind: Secret
metadata: {{name: keys}}
data: {{token: c2VjcmV0}}
"""


def tfjob(yard: Yard, spec: str) -> None:
    indented = "\n".join(" " * 10 + line for line in spec.strip("\n").splitlines())
    yard.write("job.yaml", TFJOB.format(spec=indented))


def test_variables_are_expanded_as_the_kubelet_does(yard: Yard) -> None:
    tfjob(
        yard,
        """
containers:
- name: tensorflow
  image: none
  command: [echo, $(A), "$(B)", $(UNKNOWN), $$(A), "x$(A)y"]
  args: [$(LATE)]
  env:
  - {name: A, value: one}
  - {name: B, value: "$(A)-$(LATE)"}
  - {name: LATE, value: late}
""",
    )
    assert yard.run().lines("worker-0") == ["one one-$(LATE) $(UNKNOWN) $(A) xoney late"]


def test_env_comes_from_config_maps_secrets_and_the_pod_itself(yard: Yard) -> None:
    tfjob(
        yard,
        """
containers:
- name: tensorflow
  image: none
  command: [sh, -c, 'echo "$RATE $TOKEN $ME $TEAM $IP $ALL_rate $LIMIT"']
  resources: {limits: {memory: 512Mi}}
  envFrom: [{prefix: ALL_, configMapRef: {name: settings}}]
  env:
  - {name: RATE, valueFrom: {configMapKeyRef: {name: settings, key: rate}}}
  - {name: TOKEN, valueFrom: {secretKeyRef: {name: keys, key: token}}}
  - {name: ME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: TEAM, valueFrom: {fieldRef: {fieldPath: "metadata.labels['team']"}}}
  - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
  - {name: LIMIT, valueFrom: {resourceFieldRef: {resource: limits.memory}}}
  - {name: NONE, valueFrom: {secretKeyRef: {name: keys, key: absent, optional: true}}}
""",
    )
    assert yard.run().lines("worker-0") == ["0.5 secret t-worker-0 vision 127.0.0.1 0.5 536870912"]


def test_a_missing_secret_is_named_before_anything_starts(yard: Yard) -> None:
    tfjob(
        yard,
        """
containers:
- name: tensorflow
  image: none
  command: [env]
  env: [{name: KEY, valueFrom: {secretKeyRef: {name: vault, key: password}}}]
""",
    )
    done = yard.tfyard("run", "job.yaml")
    assert done.returncode == 2
    assert "vault" in done.stderr
    assert "--env KEY=VALUE" in done.stderr
    assert not (yard.folder / ".tfyard").exists()
    assert "KEY=a$(B)$$" in yard.run("--env", "KEY=a$(B)$$").lines("worker-0")


def test_init_containers_run_first_and_in_turn(yard: Yard) -> None:
    tfjob(
        yard,
        """
volumes: [{name: work, emptyDir: {}}]
initContainers:
- {name: one, image: none, command: [sh, -c, "echo 1 >> /w/order"], volumeMounts: [{name: work, mountPath: /w}]}
- {name: two, image: none, command: [sh, -c, "echo 2 >> /w/order"], volumeMounts: [{name: work, mountPath: /w}]}
containers:
- {name: tensorflow, image: none, command: [cat, /work/order], volumeMounts: [{name: work, mountPath: /work}]}
""",
    )
    assert yard.run().lines("worker-0") == ["1", "2"]


def test_a_failing_init_container_fails_the_task_with_its_code(yard: Yard) -> None:
    tfjob(
        yard,
        """
initContainers: [{name: fetch, image: none, command: [sh, -c, "echo no network; exit 9"]}]
containers: [{name: tensorflow, image: none, command: [echo, never]}]
""",
    )
    outcome = yard.run()
    assert outcome.code == 9
    assert outcome.lines("worker-0") == []
    assert "no network" in outcome.message


def test_a_sidecar_runs_beside_and_is_stopped_with_the_job(yard: Yard) -> None:
    tfjob(
        yard,
        """
volumes: [{name: work, emptyDir: {}}]
initContainers:
- name: helper
  image: none
  restartPolicy: Always
  command: [sh, -c, "touch /work/ready; sleep 1000"]
  volumeMounts: [{name: work, mountPath: /work}]
containers:
- name: tensorflow
  image: none
  command: [sh, -c, "while ! [ -e /work/ready ]; do sleep .05; done; echo done"]
  volumeMounts: [{name: work, mountPath: /work}]
""",
    )
    outcome = yard.run()
    assert outcome.code == 0
    assert outcome.lines("worker-0") == ["done"]


def test_config_maps_and_secrets_are_mounted_as_files(yard: Yard) -> None:
    tfjob(
        yard,
        """
volumes:
- {name: settings, configMap: {name: settings, items: [{key: model.txt, path: sub/model}]}}
- {name: keys, secret: {secretName: keys}}
containers:
- name: tensorflow
  image: none
  command: [sh, -c, "cat /settings/sub/model; echo; cat /keys/token"]
  volumeMounts: [{name: settings, mountPath: /settings}, {name: keys, mountPath: /keys}]
""",
    )
    assert yard.run().lines("worker-0") == ["deep", "secret"]


def test_mount_paths_are_the_clusters_own_and_leave_nothing_on_the_disk(yard: Yard) -> None:
    yard.job(
        "import os; open('/tfyard-test-out/deep/model', 'w').write('m'); print(os.listdir('/tfyard-test-out'))",
        volumes={"out": {"claim": "results", "at": "/tfyard-test-out/deep", "subPath": "mine"}},
    )
    outcome = yard.run()
    assert outcome.code == 0
    assert (yard.folder / ".tfyard/volumes/results/mine/model").read_text() == "m"
    assert not Path("/tfyard-test-out").exists()


def test_a_claim_outlives_the_run_and_scratch_space_does_not(yard: Yard) -> None:
    script = """
import os
for place in ("/keep", "/scratch"):
    print(place, os.path.exists(place + "/seen")); open(place + "/seen", "w")
"""
    volumes = {"keep": {"claim": "c", "at": "/keep"}, "scratch": {"emptyDir": {}, "at": "/scratch"}}
    yard.job(script, volumes=volumes)
    for keep in (False, True):
        done = yard.tfyard("run", "job.yaml", "-o", "json")
        lines = [e["text"] for e in map(json.loads, done.stdout.splitlines()) if e["event"] == "log"]
        assert lines == [f"/keep {keep}", "/scratch False"]


def test_mount_puts_a_directory_of_the_users_in_place(yard: Yard) -> None:
    yard.write("mydata/a.csv", "1,2,3")
    yard.job(
        "print(open('/data/a.csv').read())",
        volumes={"data": {"nfs": "10.0.0.5:/exports/data", "at": "/data", "readOnly": True}},
    )
    assert yard.run("--mount", "data=mydata").lines("worker-0") == ["1,2,3"]


def test_a_read_only_volume_cannot_be_written_to(yard: Yard) -> None:
    yard.job("open('/data/x', 'w')", volumes={"data": {"claim": "c", "at": "/data", "readOnly": True}})
    outcome = yard.run()
    assert outcome.code == 1
    assert "Read-only" in outcome.message


def test_a_task_beyond_its_memory_limit_is_killed_as_on_a_cluster(yard: Yard) -> None:
    yard.job("import time; x = bytearray(300_000_000); time.sleep(1000)", memory="150Mi")
    outcome = yard.run()
    assert outcome.code == 137
    assert "OOMKilled" in outcome.message


def test_env_and_set_change_the_job_from_the_command_line(yard: Yard) -> None:
    yard.job("import os; print(os.environ['X'])", worker=1, success="all-workers")
    outcome = yard.run("--set", "worker=3", "--env", "X=on")
    assert [outcome.lines(f"worker-{i}") for i in range(3)] == [["on"]] * 3


def test_what_a_process_cannot_honour_is_named_once(yard: Yard) -> None:
    words = {"nodeSelector": {"gpu": "a100"}, "cpu": 2, "serviceAccount": "trainer", "suspend": True}
    yard.job("pass", worker={"count": 2, "memory": "900Ti"}, **words)
    notes = [event["text"] for event in yard.run().of("note")]
    (told,) = [text for text in notes if text.startswith("not supported here")]
    assert "node selection" in told
    assert "CPU limits" in told
    assert "the service account" in told
    assert "suspend (the job starts at once)" in told
    assert any(text.startswith("the tasks may use 1,843,200.0 GiB of memory, and") for text in notes)


def test_code_from_git_is_fetched_for_the_run(yard: Yard) -> None:
    repository = yard.folder / "repo"
    yard.write("repo/task.py", "print('from git')")
    for command in ("init -q -b main", "add -A", "-c user.name=a -c user.email=a@b commit -q -m x"):
        subprocess.run(["git", "-C", str(repository), *command.split()], check=True)
    yard.job("", code={"git": str(repository)})
    assert yard.run().lines("worker-0") == ["from git"]


def test_gpus_are_shared_out_over_the_tasks_that_train(yard: Yard) -> None:
    script = """
import os, time
print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True)
open('said-' + os.environ['JOB_NAME'], 'w')
while not os.path.exists('said-ps'): time.sleep(.05)
"""
    worker, env = {"count": 2, "gpu": 1}, {"ROLE": "$(JOB_NAME)"}
    yard.job(script, worker=worker, ps=1, success="all-workers", env=env)
    outcome = yard.run(CUDA_VISIBLE_DEVICES="2,3")
    assert [outcome.lines(task) for task in ("worker-0", "worker-1", "ps-0")] == [["2"], ["3"], [""]]
    notes = [event["text"] for event in outcome.of("note")]
    assert "GPUs of worker-0: 2; worker-1: 3; ps-0: none" in notes


def test_gpus_are_refused_shared_or_missed_in_one_line(yard: Yard) -> None:
    yard.job("import os; print(os.environ['CUDA_VISIBLE_DEVICES'])", gpu=2, worker=2, success="all-workers")
    refused = yard.tfyard("run", "job.yaml", CUDA_VISIBLE_DEVICES="0")
    assert refused.returncode == 2
    assert "t requests 4 GPUs, and this machine has 1; --share-gpus lets tasks share them" in refused.stderr
    shared = yard.tfyard("run", "job.yaml", "--share-gpus", "--dry-run", CUDA_VISIBLE_DEVICES="0")
    assert shared.stdout.count("TF_FORCE_GPU_ALLOW_GROWTH=true") == 2
    missed = yard.tfyard("run", "job.yaml", CUDA_VISIBLE_DEVICES="").stdout
    assert missed.count("GPU") == 1
    assert "warning: this machine has no GPU, and t requests 4: its tasks run without" in missed
    script = yard.tfyard("run", "task.py", "--worker", "2", "--ps", "1", CUDA_VISIBLE_DEVICES="0,1,2,3")
    assert "GPUs of worker-0: 0, 1; worker-1: 2, 3; ps-0: none" in script.stdout


def test_an_attached_task_is_left_to_the_user(yard: Yard) -> None:
    yard.job(
        "import os, json; print(json.loads(os.environ['TF_CONFIG'])['task'])", worker=2, success="all-workers"
    )
    process = yard.start("run", "job.yaml", "-o", "json", "--attach", "worker-0")
    assert process.stdout is not None
    events = []
    while not any(e["event"] == "note" and "start worker-0 yourself" in e["text"] for e in events):
        events.append(json.loads(process.stdout.readline()))
    script = events[-1]["text"].partition("sh ")[2]
    wait_until((yard.folder / script).exists, "its script is there")
    told = subprocess.run(["sh", script], cwd=yard.folder, capture_output=True, text=True, check=True)
    assert told.stdout == "{'type': 'worker', 'index': 0}\n"
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_an_attached_task_that_is_restarted_is_started_by_the_user_again(yard: Yard) -> None:
    yard.job("pass", restart="on-failure", retries=2)
    process = yard.start("run", "job.yaml", "-o", "json", "--attach", "worker-0")
    assert process.stdout is not None
    for start in (1, 2):
        events = [json.loads(process.stdout.readline())]
        while not any(e["event"] == "started" and e["start"] == start for e in events):
            events.append(json.loads(process.stdout.readline()))
        if start == 2:
            events.append(json.loads(process.stdout.readline()))
        (told,) = (e["text"] for e in events if "start worker-0 yourself" in e.get("text", ""))
        script = told.partition("sh ")[2]
        done = subprocess.run(["sh", script, "sh", "-c", f"exit {2 - start}"], cwd=yard.folder, check=False)
        assert done.returncode == 2 - start
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_dry_run_shows_the_processes_and_starts_none(yard: Yard) -> None:
    yard.job("print('never')", worker=2, env={"RATE": 0.1})
    done = yard.tfyard("run", "job.yaml", "--dry-run")
    assert done.returncode == 0
    assert "worker-1:" in done.stdout
    assert "RATE=0.1" in done.stdout
    assert '"task":{"type":"worker","index":1}' in done.stdout
    assert not (yard.folder / ".tfyard").exists()


def test_a_script_runs_without_a_job_file_and_save_writes_one(yard: Yard) -> None:
    yard.write("train.py", "import sys, os; print(sys.argv[1:], 'TF_CONFIG' in os.environ)")
    done = yard.tfyard("run", "train.py", "--worker", "2", "--save", "saved.yaml", "--", "--steps", "100")
    assert done.returncode == 0
    assert "worker-0 │ ['--steps', '100'] True" in done.stdout
    again = yard.tfyard("run", "saved.yaml")
    assert "worker-0 │ ['--steps', '100'] True" in again.stdout


def test_a_saved_job_has_the_variables_and_what_cannot_be_saved_is_said(yard: Yard) -> None:
    yard.write("train.py", "import os; print(os.environ['A'])")
    dry = yard.tfyard("run", "train.py", "--env", "A=on", "--save", "saved.yaml", "--dry-run")
    assert dry.stderr == "--save: a dry run does not write saved.yaml\n"
    assert not (yard.folder / "saved.yaml").exists()
    assert yard.tfyard("run", "train.py", "--env", "A=on", "--save", "saved.yaml").returncode == 0
    assert "worker-0 │ on" in yard.tfyard("run", "saved.yaml").stdout
    again = yard.tfyard("run", "saved.yaml", "--save", "other.yaml")
    assert (again.returncode, again.stdout) == (2, "")
    assert "--save is for scripts" in again.stderr
