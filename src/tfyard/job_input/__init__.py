"""What a command is given: a file of any format, a Python script or a module, and options that change the job.
Shared by `local` and `remote`, so that the same words mean the same here and on a cluster."""
