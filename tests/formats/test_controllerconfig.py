"""The operator's config file: the old format, the fields that tfyard adds, and all problems at once."""

from pathlib import Path

import pytest

from tfyard.errors import Invalid
from tfyard.formats.controllerconfig import (
    AcceleratorConfig,
    DriverVariable,
    DriverVolume,
    OperatorConfig,
    load,
)
from tfyard.model import Problem
from tfyard.model.problem import format_path

SEED = (Path(__file__).parents[1] / "golden" / "seed_004" / "controller_config_file.yaml").read_text()

DRIVERS = AcceleratorConfig(
    volumes=[
        DriverVolume("lib", "/usr/lib/nvidia-384", "/usr/lib/nvidia"),
        DriverVolume("bin", "/usr/lib/nvidia-384/bin", "/usr/local/nvidia/bin"),
        DriverVolume(
            "libcuda", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
        ),
    ],
    env_vars=[DriverVariable("LD_LIBRARY_PATH", "/usr/lib/nvidia:/usr/lib/x86_64-linux-gnu")],
)
SEEN = OperatorConfig(
    grpc_server_file_path="/opt/mlkube/grpc_tensorflow_server/grpc_tensorflow_server.py",
    accelerators={"alpha.kubernetes.io/nvidia-gpu": DRIVERS},
)


GPU = "accelerators[nvidia.com/gpu]."
MOUNTED = "must be unique: another volume is mounted there"


def problems(text: str) -> list[Problem]:
    with pytest.raises(Invalid) as caught:
        load(text, "config.yaml")
    return list(caught.value.problems)


def reported_by(text: str) -> list[tuple[str, str, str]]:
    return [(format_path(p.path), p.message, p.fix) for p in problems(text)]


def test_the_seeds_own_file_is_accepted_as_it_is() -> None:
    assert load(SEED) == SEEN


def test_fields_are_known_in_any_letter_case_and_resources_only_in_theirs() -> None:
    text = SEED.replace("grpcServerFilePath", "GRPCSERVERFILEPATH").replace("envVars", "EnvVars")
    text = text.replace("mountPath", "mountpath").replace("accelerators", "Accelerators")
    assert load(text) == SEEN
    assert list(load("accelerators: {AMD.com/GPU: {}}").accelerators) == ["AMD.com/GPU"]


def test_all_fields_that_tfyard_adds_are_read() -> None:
    text = """
tfImage: tensorflow/tensorflow:1.3.0
psImage: registry.example/ps:1
psCommand: [serve, --quietly]
tensorboardImage: registry.example/board:1
clusterDomain: cluster.local
services: per-replica
dialect: kubeflow
"""
    assert load(text) == OperatorConfig(
        tf_image="tensorflow/tensorflow:1.3.0",
        ps_image="registry.example/ps:1",
        ps_command=["serve", "--quietly"],
        tensorboard_image="registry.example/board:1",
        cluster_domain="cluster.local",
        services="per-replica",
        dialect="kubeflow",
    )


@pytest.mark.parametrize("text", ["", "# nothing\n", "accelerators:\n", "{}"])
def test_an_empty_file_means_all_defaults(text: str) -> None:
    assert load(text) == OperatorConfig()


def test_all_problems_are_reported_at_once_each_with_its_position() -> None:
    text = """\
Accelerator: {}
services: each
clusterDomain: .cluster.local
accelerators:
  nvidia.com/gpu:
    Volumes:
      - {name: lib, hostPath: /lib, mountPath: lib}
      - {name: lib, HOSTPATH: bin, mountPath: /usr/bin}
      - {name: No Good, hostPath: /lib, mountPath: /usr/bin}
      - {name: half, hostPath: /lib}
    envVars: [{nam: A, value: b}, {name: A=B, value: 1}]
"""
    reported = problems(text)
    assert {
        (p.position.line if p.position else 0, format_path(p.path), p.message, p.fix) for p in reported
    } == {
        (1, "Accelerator", "unknown field 'Accelerator'", "did you mean accelerators?"),
        (2, "services", "must be one of shared, per-replica", ""),
        (3, "clusterDomain", "must be a DNS domain", "write cluster.local"),
        (7, GPU + "Volumes[0].mountPath", "must be an absolute path", "/lib"),
        (8, GPU + "Volumes[1].name", "lib is given twice", "name each volume once"),
        (8, GPU + "Volumes[1].HOSTPATH", "must be an absolute path", "/bin"),
        (9, GPU + "Volumes[2].name", "must be a DNS label", "use lower-case letters, digits and '-'"),
        (9, GPU + "Volumes[2].mountPath", MOUNTED, "choose another path"),
        (10, GPU + "Volumes[3].mountPath", "must be given", "Mount path in the container."),
        (11, GPU + "envVars[0].nam", "unknown field 'nam'", "did you mean name?"),
        (11, GPU + "envVars[0].name", "must be given", "Name of the variable."),
        (11, GPU + "envVars[1].value", "must be text", "quote it"),
        (
            11,
            GPU + "envVars[1].name",
            "must be the name of an environment variable",
            "for example LD_LIBRARY_PATH",
        ),
    }


REFUSED = {
    "a list": ("- a", [("", "must be a mapping", "")]),
    "one field in two letter cases": (
        "tfImage: a\nTFIMAGE: b",
        [("TFIMAGE", "tfImage is given twice", "keep one of the two")],
    ),
    "two documents": (
        "tfImage: a\n---\ntfImage: b",
        [("", "must be one document", "remove everything after ---")],
    ),
    "an unknown dialect": (
        "dialect: kubflow",
        [("dialect", "must be one of tf2, kubeflow, tf1", 'did you mean "kubeflow"?')],
    ),
}


@pytest.mark.parametrize(("text", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_a_wrong_config_is_refused_with_path_and_fix(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert reported_by(text) == expected


def test_a_key_that_is_no_text_is_a_problem_like_others() -> None:
    assert [message for _, message, _ in reported_by("1: a\ntrue: b")] == [
        "the key 1 is read as a number, not as text",
        "the key true is read as true or false, not as text",
    ]
