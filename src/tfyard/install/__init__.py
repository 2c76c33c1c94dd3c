"""How tfyard gets onto a cluster, as declarations: what the operator may do there. Pure."""
