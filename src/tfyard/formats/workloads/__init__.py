"""Kubernetes' own workloads (Jobs, StatefulSets, …) whose pods are tasks of a training -> Jobs of tfyard."""
