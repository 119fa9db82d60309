"""
Crash safety of a whole region: the power may go at any write of the bring-up, on any side of it.

Points are classed by what is written, how, and on which side; some classes are tried here, and
`make sweep` tries every single write. OpenBao's init is the one place where a person is needed:
whoever dies between its answer and the write of the keys has lost them, and the driver then asks
before it starts over.
"""

from tests.twin import points, workflows
from tests.twin.stage import Region

ONLY_A_PERSON = "initialise openbao"


def test_every_kind_of_crash_in_a_bring_up_is_survived() -> None:
    """Converged, stable, the same end, every write accounted for."""
    count, broken = points.sweep(workflows.bring_up, Region.of, nth=6)

    assert [words for words in broken if ONLY_A_PERSON not in words] == []
    assert count > 16
