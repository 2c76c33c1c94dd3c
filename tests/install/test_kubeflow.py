"""Taking TFJobs over from training-operator changes only what is necessary, and can be undone exactly."""

from typing import Any

from tfyard.formats.crd.documents import crds
from tfyard.install import kubeflow
from tfyard.model import Manifest

PLURALS = ["tfjobs", "pytorchjobs", "jaxjobs"]


def deployment(*args: str, **spec: Any) -> Manifest:
    container = {
        "name": "training-operator",
        "image": "kubeflow/training-operator:v1.9",
        "command": ["/manager"],
    }
    if args:
        container["args"] = list(args)  # type: ignore[assignment]
    pod = {"containers": [{"name": "proxy", "image": "p"}, container]}
    return {
        "metadata": {"name": "training-operator", "namespace": "kubeflow", "annotations": {"theirs": "1"}},
        "spec": {"replicas": 1, "template": {"spec": pod}, **spec},
    }


def webhooks() -> Manifest:
    def webhook(plural: str) -> Manifest:
        name = f"validator.{plural.removesuffix('s')}.training-operator.kubeflow.org"
        return {"name": name, "failurePolicy": "Fail", "rules": [{"resources": [plural]}]}

    return {"metadata": {"name": "validator"}, "webhooks": [webhook("tfjobs"), webhook("pytorchjobs")]}


def args_of(deployment: Manifest) -> list[str]:
    args: list[str] = deployment["spec"]["template"]["spec"]["containers"][1]["args"]
    return args


def test_an_operator_of_all_kinds_keeps_the_others_that_the_cluster_has() -> None:
    before = deployment("--zap-log-level=2")
    changed = kubeflow.without_tfjobs(before, PLURALS)
    assert args_of(changed) == ["--zap-log-level=2", "--enable-scheme=pytorchjob", "--enable-scheme=jaxjob"]
    assert not kubeflow.reconciles_tfjobs(changed)
    assert kubeflow.with_tfjobs(changed) == before


def test_an_operator_of_some_kinds_keeps_exactly_those() -> None:
    before = deployment("--enable-scheme=TFJob", "--enable-scheme=mpijob")
    changed = kubeflow.without_tfjobs(before, PLURALS)
    assert args_of(changed) == ["--enable-scheme=mpijob"]
    assert kubeflow.with_tfjobs(changed) == before


def test_an_operator_of_tfjobs_alone_is_scaled_to_zero_and_back() -> None:
    before = deployment("--enable-scheme=tfjob", replicas=2)
    changed = kubeflow.without_tfjobs(before, PLURALS)
    assert changed["spec"]["replicas"] == 0
    assert not kubeflow.reconciles_tfjobs(changed)
    assert kubeflow.with_tfjobs(changed) == before


def test_an_operator_that_leaves_tfjobs_alone_is_no_conflict() -> None:
    assert kubeflow.is_kubeflow_operator(deployment())
    assert kubeflow.reconciles_tfjobs(deployment())
    assert not kubeflow.reconciles_tfjobs(deployment("--enable-scheme=pytorchjob"))
    assert not kubeflow.reconciles_tfjobs(deployment(replicas=0))
    assert kubeflow.with_tfjobs(deployment()) is None


def test_only_the_webhook_of_tfjobs_is_removed_and_it_can_be_restored() -> None:
    before = webhooks()
    assert kubeflow.blocks_tfjobs(before)
    changed = kubeflow.without_webhooks(before)
    assert [each["rules"][0]["resources"] for each in changed["webhooks"]] == [["pytorchjobs"]]
    assert not kubeflow.blocks_tfjobs(changed)
    back = kubeflow.with_webhooks(changed)
    assert back is not None
    assert {each["name"] for each in back["webhooks"]} == {each["name"] for each in before["webhooks"]}
    assert kubeflow.with_webhooks(before) is None


def test_the_state_of_jobs_is_shown_as_training_operator_writes_it() -> None:
    ours, *_ = crds()
    shown = kubeflow.showing_its_state(ours)
    for before, after in zip(ours["spec"]["versions"], shown["spec"]["versions"], strict=True):
        state, *others = after["additionalPrinterColumns"]
        assert state == {"name": "State", "type": "string", "jsonPath": ".status.conditions[-1:].type"}
        assert others == before["additionalPrinterColumns"][1:]
        assert {**after, "additionalPrinterColumns": []} == {**before, "additionalPrinterColumns": []}
