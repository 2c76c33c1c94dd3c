"""How tfyard is installed on a cluster, as declarations: which permissions the operator needs there. Pure."""
