"""tfyard: one TensorFlow job file, run here, rendered as manifests, or kept going on Kubernetes."""

__version__ = "0.1.0"
