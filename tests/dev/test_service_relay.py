"""Services of a real apiserver lead to pods, by address and by name."""

import os
import shutil
from typing import Any

import pytest

from tests.node import boxes
from tfyard.dev.service_relay import BURST
from tfyard.testing import ControlPlane

pytestmark = pytest.mark.cluster

USER = boxes.USERS[-1]


def run(name: str, plane: ControlPlane, namespace: str) -> Any:
    with boxes.folder_for(USER) as folder:
        kubeconfig = shutil.copy(plane.kubeconfig, folder)
        os.chown(kubeconfig, USER, USER)
        return boxes.run(name, folder, USER, kubeconfig, namespace, module="tests.dev.boxes")


def test_pods_reach_a_cluster_address_as_long_as_a_pod_is_ready(
    control_plane: ControlPlane, namespace: str
) -> None:
    assert run("services", control_plane, namespace) == [
        "two.ring I am two",
        "{'I am one': 2, 'I am two': 2}",
        "{'I am one': 2, 'I am two': 2}",
        "HTTP/1.1 200 Connection established True",
        "{'I am one': 4}",
        "{'ConnectionRefusedError': 4}",
    ]


def test_a_hundred_names_that_come_together_are_few_writes(
    control_plane: ControlPlane, namespace: str
) -> None:
    writes, seconds = run("many_names", control_plane, namespace)
    assert writes <= 2 + seconds / BURST, "so many as there are bursts, and not as there are names"
