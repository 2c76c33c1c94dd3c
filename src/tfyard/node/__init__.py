"""This machine as a node: the one life of a pod, as processes, for runs of this machine and for the kubelet.

pod.py        volumes and network first, init containers in turn, then containers side by side; eviction, stop
container.py  the runs of one container: restarts, hooks, probes, termination messages
volumes.py    directories for volumes; `Sources`: where ConfigMaps, Secrets, Services, tokens and claims come from
pod_data.py, containers.py   what a manifest means: files, variables, arguments (pure)
node.py       what all pods share; `Owner`: the creator of a pod, which decides what the manifest leaves open
engine.py     processes of containers, probes, hooks and exec; memory.py  their limits and use
states.py     the state of a pod at one moment; ending.py  how programs are asked to end
processes.py, launch.py, supervisor.py   the parent of every process: see supervisor.py; standard_input.py
output.py, logs.py, log_times.py         lines, and when they were written
linux_namespaces.py, network.py, hosts.py   what a process sees of the disk, the network and the names in it

An owner and sources are all that differs: `backends/local/node.py` has those of a run (files; the restarts that
its job allows; logs by task), `kubelet/processes.py` and `kubelet/sources.py` those of a cluster (the API).

Imports nothing, because the supervisor is started through this package and must start fast.
"""

SCRATCH = "scratch"
"""Directory of a run for what does not outlive the run: temporary space, Secrets as files."""
WORK = "work"
"""Directory of a run with a working directory for each container that names none."""
