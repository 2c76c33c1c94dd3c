"""Pod templates: checked against the fields that Kubernetes declares, merged, and brought up to date."""
