"""Where it happens: the laptop and the cluster, behind the same two narrow protocols (see base.py)."""
