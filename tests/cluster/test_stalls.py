"""A job on a whole cluster whose programs hang: it says so, and `tfyard why --stacks` what they are doing."""

import pytest

from tests.cluster.jobs import Jobs

pytestmark = pytest.mark.cluster
JOB = """
name: hangs
image: example/train:1
stall: 4s
worker: 2
run:
- python
- -c
- |
  import faulthandler, signal, time
  faulthandler.register(signal.SIGUSR1)
  def waits_for_a_peer():
      time.sleep(600)
  print("step 1", flush=True)
  waits_for_a_peer()
"""


def test_a_job_that_hangs_says_so_and_shows_what_its_programs_do(jobs: Jobs) -> None:
    jobs.submit(JOB)
    jobs.until_phase("hangs", "Stalled")
    why = jobs.tfyard("why", "hangs", "--stacks")
    assert why.code == 3, why.err
    assert why.out.startswith("worker-0 has written no line for more than 4s: it hangs\n")
    assert "Z: step 1\n" in why.out
    first, second = why.out.split("\nworker-0, process ")[1].split("\nworker-1, process ")
    assert "waits_for_a_peer" in first
    assert "waits_for_a_peer" in second
