"""A job on a cluster as an application: submit, follow, copy, act. The twin of `local`."""
