import json

import pytest

from tests.cli.running import tfyard
from tfyard.errors import Usage
from tfyard.formats.declarations.explaining import explain
from tfyard.formats.jobfile.words import JobFile
from tfyard.formats.tfjob.fields import RunPolicySpec, SchedulingSpec, TFJobSpec


def test_without_a_field_the_words_of_the_job_file_are_listed() -> None:
    done = tfyard("explain")
    assert "worker" in json.loads(tfyard("explain", "-o", "json").out)["fields"]
    assert done.code == 0
    assert done.out.startswith("FIELD: job file <mapping>")
    assert "  worker <number or mapping>\n      The tasks that train: a number, or a mapping\n" in done.out


def test_every_word_of_the_job_file_is_explained() -> None:
    fields = explain("").fields
    assert set(fields) == set(JobFile.__struct_encode_fields__)
    for name in fields:
        assert explain(name).description
        for inner, (kind, text) in explain(name).fields.items():
            assert (kind, text) != ("", ""), f"{name}.{inner}"
            assert explain(f"{name}.{inner}").description


@pytest.mark.parametrize(
    ("path", "spec"),
    [
        ("tfjob.spec", TFJobSpec),
        ("spec.runPolicy", RunPolicySpec),
        ("tfjob.spec.runPolicy.schedulingPolicy", SchedulingSpec),
    ],
)
def test_every_field_of_tfjob_is_explained(path: str, spec: type) -> None:
    fields = explain(path).fields
    assert set(fields) == set(spec.__struct_encode_fields__)  # type: ignore[attr-defined]
    assert all(text for _, text in fields.values())
    assert all(explain(f"{path}.{name}").description for name in fields)


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        ("worker.gpu", "number or mapping", "GPUs of each task"),
        ("restart", "always | exit-code | never | on-failure", "never fails the job"),
        ("volumes.data", "mapping", "exactly one source"),
        ("tfjob.spec.replicaSpecs", "list", "A field of v1alpha1; `tfyard convert` writes v1."),
        ("spec.replicaSpecs.tfReplicaType", "MASTER | PS | WORKER", "MASTER (default)"),
        ("spec.terminationPolicy.chief.replicaName", "MASTER | PS | WORKER", "Replica type"),
        ("spec.replicaSpecs.template.spec.nodeName", "string", "nodename"),
        ("volumes.data.nfs", "text", "An NFS export"),
        ("volumes.nfs", "text", "An NFS export"),
        ("evaluator.grace", "number or text", "last checkpoint"),
        ("spec.tfReplicaSpecs.Worker", "mapping", "One role of the job"),
        (
            "tfjob.spec.tfReplicaSpecs.Worker.restartPolicy",
            "Always | ExitCode | Never | OnFailure",
            "ExitCode",
        ),
        ("tfjob.spec.tfReplicaSpecs.template", "object", "PodTemplateSpec"),
        ("tfjob.spec.tfReplicaSpecs.template.spec.containers.image", "string", "Container image name"),
        ("spec.tfReplicaSpecs.PS.template.spec.containers.env.valueFrom.secretKeyRef.key", "string", "key"),
    ],
)
def test_a_field_is_explained_however_deep_it_lies(path: str, kind: str, words: str) -> None:
    found = explain(path)
    assert (found.path, found.type) == (path, kind)
    assert words in found.description


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("wroker", "wroker: field 'wroker' not found; did you mean worker?"),
        ("worker.gp", "worker.gp: field 'gp' not found; did you mean gpu?"),
        ("name.x", "name.x: field 'x' not found; this field has no fields of its own"),
        ("tfjob.status", "status: not explained; try tfjob.spec"),
        ("spec.tensorbord", "spec.tensorbord: field 'tensorbord' not found; did you mean tensorboard?"),
        ("spec.runPolcy", "spec.runPolcy: field 'runPolcy' not found; did you mean runPolicy?"),
        (
            "spec.tfReplicaSpecs.template.spec.containers.imagge",
            "spec.tfReplicaSpecs.template.spec.containers.imagge: field 'imagge' not found; did you mean image?",
        ),
    ],
)
def test_a_field_that_is_not_there_gets_the_likely_one(path: str, message: str) -> None:
    with pytest.raises(Usage) as caught:
        explain(path)
    assert str(caught.value) == message


def test_a_typo_on_the_command_line_exits_with_2() -> None:
    done = tfyard("explain", "wroker")
    assert (done.code, done.err) == (2, "tfyard: wroker: field 'wroker' not found; did you mean worker?\n")


def test_a_cause_that_why_names_is_explained_where_there_are_no_pages() -> None:
    text = tfyard("explain", "why.no-room").out
    assert "No node offers what the task asks for" in text
    assert "  no-room <cause>" in tfyard("explain", "why").out
    done = tfyard("explain", "why.no-rom")
    assert (done.code, done.err) == (2, "tfyard: there is no cause no-rom; did you mean no-room?\n")
