"""What is done to a job of a cluster: stop, resume, restart, scale, rerun, delete."""
