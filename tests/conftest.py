"""Settings for all tests: hypothesis must be repeatable and must not time single examples."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "tacit", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tacit")
