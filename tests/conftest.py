"""Hypothesis judges examples by the clock unless told not to; a busy machine is no bug."""

from hypothesis import HealthCheck, settings

settings.register_profile("tfyard", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tfyard")
