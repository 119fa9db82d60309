"""What all tests share: logs go nowhere unless a test asks for them, and nothing is timed."""

import logging
import signal

import hypothesis
import structlog

# A job in the background of a shell is deaf to Ctrl-C, and so would be each program it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

structlog.configure(
    wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
    cache_logger_on_first_use=False,
)

# A machine with other work to do is slow, and that is no fault of a strategy.
hypothesis.settings.register_profile(
    "fleetd", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("fleetd")
