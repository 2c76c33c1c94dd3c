"""What a process cannot have."""

from tfyard.local.shortfalls import shortfalls
from tfyard.model import Job, Role


def test_what_a_process_cannot_have_is_named_once() -> None:
    container = {"name": "tensorflow", "livenessProbe": {}, "lifecycle": {"preStop": {}}}
    spec = {"containers": [container], "affinity": {"x": {}}, "volumes": [{"name": "disk", "csi": {}}]}
    roles = (Role(name="Worker", template={"spec": spec}), Role(name="PS", template={"spec": spec}))
    assert shortfalls(Job(name="j", roles=roles)) == ["affinity", "lifecycle hooks", "the volume disk"]
