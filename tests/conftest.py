"""What all tests share: logs go nowhere unless a test asks for them, and nothing is timed."""

import logging

import hypothesis
import structlog

structlog.configure(
    wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
    cache_logger_on_first_use=False,
)

# A machine with other work to do is slow, and that is no fault of a strategy.
hypothesis.settings.register_profile(
    "fleetd", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("fleetd")
