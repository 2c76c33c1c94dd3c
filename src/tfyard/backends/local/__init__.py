"""This machine as a tiny kubelet: the pods that the planner makes become real processes.

Imports nothing, because the supervisor of every run starts through here and has to be there at once.
"""
