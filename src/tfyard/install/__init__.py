"""The objects that an installation consists of: CRDs, roles and the operator's Deployment. Pure."""
