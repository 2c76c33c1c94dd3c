"""A real Kubernetes control plane as child processes, and the binaries that it needs."""
