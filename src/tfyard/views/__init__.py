"""Decoded pods, events, claims, nodes and the status of a TFJob: the few fields that are read.

Pure. These objects are decoded only here, and only here a pod tells how the program of its task ended.
"""
