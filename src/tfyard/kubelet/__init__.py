"""The API half of a kubelet: nodes, leases, the status of pods, their deletion; over a runtime that runs them."""
