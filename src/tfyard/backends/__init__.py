"""The places where jobs run: this machine and a cluster, behind the same two protocols (see base.py)."""
