"""What a caller would like to get, by its weights; what is not understood wants nothing."""

import pytest

from fleetd.surface import accept


@pytest.mark.parametrize(
    ("given", "packed"),
    [
        ("gzip", True),
        ("GZIP ; Q=0.5", True),
        ("x-gzip", True),
        ("br, *", True),
        ("gzip;q=0.001", True),
        ("identity;q=0.5, gzip;q=0.5", True),
        ("", False),
        ("br", False),
        ("gzip;q=0", False),
        ("gzip;q=0.000, *", False),
        ("*;q=0", False),
        ("identity, gzip;q=0.9", False),
        ("gzip;q=much", False),
        ("gzip;q=1.5", False),
        ("gzip;q=\u0661", False),
        ("gzip;q=", False),
        (",;,q=1;", False),
    ],
)
def test_packed(given: str, packed: bool) -> None:  # noqa: FBT001
    """gzip by its name before `*`, unless the answer as it is would be liked better."""
    assert accept.gzip(given) is packed


@pytest.mark.parametrize(
    ("given", "openly"),
    [
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3,*/*;q=0.2", True),
        ("text/plain;version=0.0.4, application/openmetrics-text", True),
        ("Application/OpenMetrics-Text", True),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=0.1, text/plain;q=0.9", False),
        ("application/openmetrics-text;q=0.1, text/*;q=0.2", False),
        ("*/*", False),
        ("application/*", False),
        ("", False),
        ("garbage, application/openmetrics-textual", False),
    ],
)
def test_openmetrics(given: str, openly: bool) -> None:  # noqa: FBT001
    """Only by its name, and if nobody likes text better."""
    assert accept.openmetrics(given) is openly
