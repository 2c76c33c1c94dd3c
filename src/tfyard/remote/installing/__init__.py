"""The operator on a cluster: installed, checked and removed."""
