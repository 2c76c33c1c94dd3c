"""A config with `resources` (and Jinja `imports`), a format of 2016 -> manifests for today's clusters."""
