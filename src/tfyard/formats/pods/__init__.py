"""Pod templates: checks against the fields that Kubernetes declares, merging, and updates of old templates."""
