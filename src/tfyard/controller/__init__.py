"""When it happens: the loop around the one decision, the same for the laptop and for the cluster."""
