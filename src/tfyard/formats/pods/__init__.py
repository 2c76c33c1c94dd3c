"""Pod templates: held against what Kubernetes knows, merged, and brought up to date."""
