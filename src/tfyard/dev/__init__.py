"""A cluster on this machine: its process, and the commands that start it, show its status and end it."""
