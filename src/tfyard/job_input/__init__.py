"""The input of a command: a file of any format, a Python script or a module, and options that change the job.
`local` and `remote` share it, so that the same words mean the same on this machine and on a cluster."""
