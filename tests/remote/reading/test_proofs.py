"""Which test makes each cause of `tfyard why` happen, on a real control plane or with real processes.

A situation is a job of `situations.py`, `admission.py` or `test_scheduling_causes.py`, a program one of
`tests/e2e/broken_programs.py`; tests make each of them happen and ask why.
"""

import importlib
import re
from pathlib import Path

import pytest
from msgspec import Struct

from tests.remote.reading import corpus, test_fixes
from tfyard.overview.cause_kinds import KINDS

DOCUMENT = Path(__file__).parents[3] / "docs" / "why.md"
SITUATIONS, PROGRAMS = corpus.ON_PLANE, {each.kind for each in corpus.PROGRAMS}


class Proof(Struct, frozen=True, kw_only=True):
    situations: str = ""
    programs: str = ""
    """Kinds."""
    tests: dict[str, str] = {}
    """Test -> the kinds that it reads."""


RUNNING, FOREIGN, JOBS = (
    "tests.remote.reading.test_running_causes",
    "tests.remote.reading.test_foreign_causes",
    "tests.remote.reading.test_causes",
)
RUNS, GANG, KUBELET = "tests.e2e.test_run_why", "tests.controller.test_gang", "tests.cluster.test_why"
FIXES = "tests.remote.reading.test_fixes"
STALLS, STALLED_RUNS = "tests.cluster.test_stalls", "tests.e2e.test_run_stalls"
LOST = "tests.controller.test_faults_lost"
POLICIES = "tests.controller.test_faults_policies"
PROOFS = {
    "1 image cannot be pulled": Proof(situations="pull private misnamed never"),
    "2 no room": Proof(
        situations="offers large busy device classless",
        tests={f"{FOREIGN}.test_a_cluster_without_nodes": "no-nodes"},
    ),
    "3 taint": Proof(situations="tainted closed sick"),
    "4 selector, affinity, spread": Proof(situations="label attracted beside apart spread"),
    "5 claim missing or pending": Proof(situations="missing unbound plain nearby far"),
    "6 claim for one node, tasks on two": Proof(situations="attached shared"),
    "7 mount fails": Proof(situations="mount"),
    "8 ConfigMap, Secret or key missing": Proof(situations="secret settings key mounted root reserved"),
    "9 quota": Proof(situations="quota unsaid ranged"),
    "10 refused": Proof(
        situations="denied hooked policed secure openshift account priority going taken edited nonsense",
        tests={
            f"{FOREIGN}.test_an_operator_that_may_not_own_its_objects": "operator-permission",
            f"{POLICIES}.test_a_label_that_a_policy_rewrites_blocks_the_job_at_once_and_is_no_endless_loop": (
                "labels-changed"
            ),
            f"{POLICIES}.test_a_service_that_is_deleted_whenever_it_is_created_is_created_ever_later": "undone",
        },
    ),
    "11 nobody works on it": Proof(
        situations="elsewhere unseen",
        tests={
            f"{JOBS}.test_a_job_on_which_no_operator_works": "no-operator",
            f"{JOBS}.test_an_operator_that_does_not_watch_the_namespace_or_that_ended": "no-operator",
            f"{FOREIGN}.test_the_crd_of_another_operator": "no-operator",
        },
    ),
    "12 queue or gang": Proof(
        situations="paused queued admission gated",
        tests={f"{GANG}.test_a_job_says_that_volcano_does_not_answer_until_it_does": "gang"},
    ),
    "13 half of it runs": Proof(situations="half"),
    "14 wrong command": Proof(situations="command started allowed shell", programs="command"),
    "15 error of the program": Proof(
        situations="fails partly",
        programs="program-error missing-module missing-file missing-variable permission no-space unreachable"
        " end-of-data child-killed nan-loss tensorflow-1 keras-3 abort crash illegal-instruction killed stopped",
    ),
    "16 out of memory": Proof(situations="memory", programs="out-of-memory gpu-memory"),
    "17 evicted, or killed by a probe": Proof(
        situations="evicted", tests={f"{KUBELET}.test_what_a_kubelet_says_is_explained": "probe"}
    ),
    "other containers than the training one": Proof(
        tests={
            f"{KUBELET}.test_what_a_kubelet_says_is_explained": "init-container sidecar not-ready",
            f"{KUBELET}.test_packages_that_cannot_be_installed_are_told_and_the_job_runs_when_their_file_is_"
            "corrected": "program-error",
        }
    ),
    "18 drained, preempted, node lost": Proof(
        situations="drained replaced preempted low lost doomed silent admitted shutdown rebooted removed vanished"
        " ending again"
    ),
    "another task was taken away": Proof(
        tests={
            f"{LOST}.test_workers_that_save_together_and_exit_with_42_run_again_together_without_a_retry": (
                "peer-lost"
            )
        }
    ),
    "deleted, and held by a finalizer": Proof(
        tests={f"{FIXES}.test_a_deleted_job_that_a_finalizer_holds_is_not_one_that_runs": "deletion"}
    ),
    "19 peers not reached": Proof(
        tests={
            f"{RUNNING}.test_a_peer_that_is_not_reached_and_what_is_between": "peers",
            f"{RUNNING}.test_peers_by_address_nccl_and_istio": "peers nccl",
            f"{RUNS}.test_a_peer_that_never_connects_is_named": "peers",
            f"{RUNS}.test_a_parameter_server_that_does_not_serve_is_named_after_two_minutes": "peers",
            f"{RUNS}.test_a_lost_peer_comes_after_what_ended_the_peer": "peers",
        }
    ),
    "a program that hangs, in a job that says for how long it may be silent": Proof(
        programs="stalled",
        tests={
            f"{STALLS}.test_a_job_that_hangs_says_so_and_shows_what_its_programs_do": "stalled",
            f"{STALLED_RUNS}.test_a_run_that_hangs_says_so_shows_what_it_does_and_goes_on": "stalled",
        },
    ),
    "20 TF_CONFIG": Proof(
        programs="tf-config strategy",
        tests={
            f"{RUNNING}.test_tasks_that_wait_for_others_to_connect_and_for_an_evaluator": "peers",
            f"{RUNNING}.test_a_loss_that_is_not_a_number_silence_and_a_crash_without_last_words": "no-progress",
            f"{JOBS}.test_what_the_crd_refuses_is_told_when_it_is_applied_and_submitted": "",
        },
    ),
    "21 port in use": Proof(
        situations="port", programs="address-in-use", tests={f"{RUNS}.test_a_port_that_another_process_has": ""}
    ),
    "22 volume not writable": Proof(programs="volume-not-writable"),
    "23 deadline, retries, crash loop": Proof(situations="late retries loop cut"),
    "24 name too long, CRD of another version": Proof(
        tests={
            f"{JOBS}.test_what_the_crd_refuses_is_told_when_it_is_applied_and_submitted": "",
            f"{FOREIGN}.test_a_name_that_is_too_long_for_pods_where_the_crd_does_not_refuse_it": "invalid-spec",
            f"{JOBS}.test_what_another_operator_says": "name failed",
            f"{FOREIGN}.test_the_crd_of_another_operator": "no-operator",
        }
    ),
    "runs on this machine": Proof(
        tests={
            f"{RUNS}.test_a_run_is_fine_while_it_runs_and_interrupted_afterwards": "interrupted",
            f"{RUNS}.test_a_run_that_its_user_restarted_and_then_stopped_was_stopped": "restarted",
        }
    ),
}  # fmt: skip


@pytest.mark.parametrize("cause", PROOFS)
def test_what_proves_a_cause_exists(cause: str) -> None:
    proof = PROOFS[cause]
    assert {*proof.situations.split()} <= {*SITUATIONS}
    assert {*proof.programs.split()} <= PROGRAMS
    for test in proof.tests:
        module, _, name = test.rpartition(".")
        assert hasattr(importlib.import_module(module), name), test


def test_every_situation_has_a_row_in_the_corpus_and_every_row_a_situation() -> None:
    assert {*corpus.ON_PLANE} == {*corpus.OF_SERVER, *corpus.OF_SCRIPT}
    assert {*corpus.ON_KUBELETS} == {*corpus.OF_KUBELET}
    assert {*corpus.PULLED} == {*corpus.OF_NODE}
    assert not {*corpus.OF_SERVER} & {*corpus.OF_SCRIPT}
    source = Path(test_fixes.__file__).read_text()
    assert [name for name in test_fixes.TOLD if f'TOLD["{name}"].assert_is(' not in source] == []


def test_all_situations_and_programs_prove_something() -> None:
    assert {*SITUATIONS} == {name for proof in PROOFS.values() for name in proof.situations.split()}
    assert {*PROGRAMS} == {kind for proof in PROOFS.values() for kind in proof.programs.split()} | {
        "deadline"
    }


def test_every_kind_that_is_documented_is_proved_and_the_other_way_round() -> None:
    table = DOCUMENT.read_text().partition("## Causes")[2]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("| <a id=")]
    documented = {kind for cell in first for kind in re.findall(r"`([a-z0-9-]+)`", cell)}
    anchors = re.findall(r'<a id="([a-z0-9-]+)"></a>', table)
    assert sorted(anchors) == sorted(documented), "tfyard why names the place of each kind"
    found = {kind for each in SITUATIONS.values() for kind in (each.kind, each.also) if kind} | PROGRAMS
    found |= {kind for proof in PROOFS.values() for kinds in proof.tests.values() for kind in kinds.split()}
    assert documented == found == {*KINDS}
