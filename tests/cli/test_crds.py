import yaml

from tests.cli.running import tfyard
from tfyard.formats.crd import crds


def test_the_definitions_are_printed_as_yaml_that_kubectl_takes() -> None:
    done = tfyard("crds")
    assert (done.code, done.err) == (0, "")
    assert tuple(yaml.load_all(done.out, Loader=yaml.CSafeLoader)) == crds()
