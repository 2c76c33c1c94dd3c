"""A cluster on this machine: the box's process, and the commands that start it, look at it and end it."""
