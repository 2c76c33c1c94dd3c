"""Tasks that were written as Kubernetes' own workloads, one object or several, -> Jobs."""
