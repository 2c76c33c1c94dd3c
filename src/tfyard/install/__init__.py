"""What is installed on a cluster, as declarations: CRDs, roles and the operator's Deployment. Pure."""
