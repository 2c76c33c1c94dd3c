"""This machine as the place where a job happens, and the directory in which its run is kept."""
