"""Drivers for containers that ask for a device: nothing twice, nothing of the user's lost."""

from typing import Any

import pytest

from tfyard.planner import Accelerator, Site
from tfyard.planner.pods import with_drivers
from tfyard.planner.site import DriverEnv, DriverMount

from .builders import job, look, manifests, role

LIB = DriverMount("lib", "/usr/lib/nvidia-384", "/usr/lib/nvidia")
PATH = DriverEnv("LD_LIBRARY_PATH", "/usr/lib/nvidia")
DRIVERS = {"nvidia.com/gpu": Accelerator(volumes=(LIB,), env_vars=(PATH,))}
MOUNT = {"name": "lib", "mountPath": "/usr/lib/nvidia"}
VOLUME = {"name": "lib", "hostPath": {"path": "/usr/lib/nvidia-384"}}
GPU = {"limits": {"nvidia.com/gpu": 1}}


def spec(volumes: Any = None, **container: Any) -> dict[str, Any]:
    trainer = {"name": "tensorflow", "image": "i", **container}
    return {
        "containers": [{"name": "side", "image": "i", "resources": GPU}, trainer],
        "volumes": volumes or [],
    }


def test_a_container_that_asks_gets_volume_mount_and_environment() -> None:
    equipped = with_drivers(spec(resources=GPU), DRIVERS)
    assert equipped["volumes"] == [VOLUME]
    assert equipped["containers"][1]["volumeMounts"] == [MOUNT]
    assert equipped["containers"][1]["env"] == [{"name": "LD_LIBRARY_PATH", "value": "/usr/lib/nvidia"}]


def test_a_sidecar_that_asks_gets_nothing() -> None:
    equipped = with_drivers(spec(resources=GPU), DRIVERS)
    assert equipped["containers"][0] == {"name": "side", "image": "i", "resources": GPU}


ASKING = {
    "limits ask": ({"limits": {"nvidia.com/gpu": 1}}, "nvidia.com/gpu", True),
    "requests ask": ({"requests": {"nvidia.com/gpu": 1}}, "nvidia.com/gpu", True),
    "a config of 2017 knows the GPU of today": (GPU, "alpha.kubernetes.io/nvidia-gpu", True),
    "another device asks for its own drivers only": (GPU, "amd.com/gpu", False),
    "no resources ask for nothing": ({}, "nvidia.com/gpu", False),
}


@pytest.mark.parametrize(("resources", "name", "given"), ASKING.values(), ids=ASKING.keys())
def test_every_container_that_requests_the_device_gets_the_drivers(
    resources: Any, name: str, given: bool
) -> None:
    equipped = with_drivers(spec(resources=resources), {name: DRIVERS["nvidia.com/gpu"]})
    assert bool(equipped["volumes"]) == given


def test_the_users_own_environment_wins() -> None:
    own = [{"name": "LD_LIBRARY_PATH", "value": "/mine"}]
    assert with_drivers(spec(resources=GPU, env=own), DRIVERS)["containers"][1]["env"] == own


def test_a_path_that_the_user_mounts_is_left_alone() -> None:
    own = [{"name": "mine", "mountPath": "/usr/lib/nvidia"}]
    equipped = with_drivers(spec(resources=GPU, volumeMounts=own), DRIVERS)
    assert equipped["containers"][1]["volumeMounts"] == own
    assert equipped["volumes"] == []


def test_an_equal_volume_is_shared() -> None:
    assert with_drivers(spec(volumes=[VOLUME], resources=GPU), DRIVERS)["volumes"] == [VOLUME]


def test_a_namesake_of_the_users_is_avoided() -> None:
    own = {"name": "lib", "emptyDir": {}}
    equipped = with_drivers(spec(volumes=[own], resources=GPU), DRIVERS)
    assert equipped["volumes"] == [own, {**VOLUME, "name": "lib-driver"}]
    assert equipped["containers"][1]["volumeMounts"] == [{**MOUNT, "name": "lib-driver"}]


def test_both_names_of_the_gpu_in_one_config_give_the_drivers_once() -> None:
    both = {**DRIVERS, "alpha.kubernetes.io/nvidia-gpu": DRIVERS["nvidia.com/gpu"]}
    assert with_drivers(spec(resources=GPU), both) == with_drivers(spec(resources=GPU), DRIVERS)


def test_the_template_is_not_changed_in_place() -> None:
    given = spec(resources=GPU)
    before = repr(given)
    with_drivers(given, DRIVERS)
    assert repr(given) == before


def test_a_job_on_a_site_with_drivers_gets_them_in_every_pod_that_asks() -> None:
    decision = look(job(role("Worker", 2, resources=GPU), role("PS", 1)), site=Site(accelerators=DRIVERS))
    mounted = ["volumes" in pod["spec"] for pod in manifests(decision).values()]
    assert mounted == [True, True, False]
