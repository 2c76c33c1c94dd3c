import pytest
import yaml

from tests.cli.running import tfyard
from tfyard.formats.crd.documents import crds
from tfyard.formats.tfjob.versions import VERSIONS

CHOICES = [
    ([], ["kubeflow.org/v1", "kubeflow.org/v1beta1"]),
    (["--versions", "all"], list(VERSIONS)),
    (["--versions", "v1"], ["kubeflow.org/v1"]),
    (["--versions", "v1alpha2, v1"], ["kubeflow.org/v1", "kubeflow.org/v1alpha2"]),
    (["--versions", "tensorflow.org/v1alpha1"], ["kubeflow.org/v1", "tensorflow.org/v1alpha1"]),
]


@pytest.mark.parametrize(("options", "served"), CHOICES)
def test_the_definitions_are_printed_as_yaml_that_kubectl_takes(
    options: list[str], served: list[str]
) -> None:
    done = tfyard("crds", *options)
    assert (done.code, done.err) == (0, "")
    printed = tuple(yaml.load_all(done.out, Loader=yaml.CSafeLoader))
    assert printed == crds(served)
    specs = [crd["spec"] for crd in printed]
    assert [f"{spec['group']}/{one['name']}" for spec in specs for one in spec["versions"]] == served


def test_an_unknown_version_is_refused_with_the_known_ones() -> None:
    done = tfyard("crds", "--versions", "v1,v2")
    assert done.code == 2
    assert "kubeflow.org/v2 not found; one of: kubeflow.org/v1, " in done.err
