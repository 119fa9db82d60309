"""A region as boxes and arrows: folded by document, counted by what each part is doing."""

from typing import Literal

import pytest

from fleetd.surface import answers, picture, shapes
from fleetd.surface.kept import Kept
from fleetd.vocabulary import Condition, Truth
from tests.surface import panels
from tests.surface.panels import FakePanel
from topology.resource import Ref

POOL, CLUSTER, FLUX = Ref("serverpool", "p"), Ref("cluster", "hv"), Ref("flux", "hv")
SERVERS = [Ref("server", f"s{number}") for number in range(3)]


def fleet(digest: str = "a" * 20) -> FakePanel:
    servers = [
        panels.resource("server", ref.name, owner=POOL, domains=(f"zone:eu-1/{zone}",))
        for ref, zone in zip(SERVERS, "aab", strict=True)
    ]
    return FakePanel(
        want=panels.topology(
            *servers,
            panels.resource("serverpool", "p", *SERVERS),
            panels.resource("cluster", "hv", POOL),
            panels.resource("flux", "hv", CLUSTER, POOL, owner=CLUSTER),
            digest=digest,
        )
    )


def drawn(panel: FakePanel, kept: Kept | None = None) -> answers.Picture:
    kept = kept or Kept(panel)
    return picture.draw(panel, "eu-1", kept.sketch("eu-1"), kept.said("eu-1"))


def boxes(panel: FakePanel) -> dict[str, answers.Box]:
    return {one["id"]: one for one in drawn(panel)["boxes"]}


def test_parts_are_folded_into_the_document_they_come_from() -> None:
    """Three servers and their pool are one box of four parts."""
    found = boxes(fleet())
    assert {name: one["total"] for name, one in found.items()} == {
        "serverpool/p": 4,
        "cluster/hv": 2,
    }


def test_a_pool_is_where_its_servers_are() -> None:
    """Its zones are read off its parts; a cluster says its own."""
    assert boxes(fleet())["serverpool/p"]["zones"] == ["a", "b"]


def test_an_arrow_stands_for_all_needs_between_two_boxes() -> None:
    """And says whether the documents themselves need each other; none leads to itself."""
    arrows = drawn(fleet())["arrows"]
    assert arrows == [{"source": "cluster/hv", "target": "serverpool/p", "direct": True}]


def test_a_need_between_parts_only_is_not_direct() -> None:
    """Such an arrow is drawn only for who looks at one of the two."""
    panel = fleet()
    want = dict(panel.want.resources)
    want[CLUSTER] = panels.resource("cluster", "hv")
    panel.want = panels.topology(*want.values())
    arrows = drawn(panel)["arrows"]
    assert arrows == [{"source": "cluster/hv", "target": "serverpool/p", "direct": False}]


def test_parts_are_counted_by_what_they_do() -> None:
    """What nobody judged is unknown, what is Ready is ready."""
    panel = fleet()
    panel.judged = {SERVERS[0]: panels.ready(Truth.TRUE), POOL: panels.ready(Truth.FALSE, "Short")}
    assert boxes(panel)["serverpool/p"]["states"] == {"failing": 1, "unknown": 2, "ready": 1}


def test_new_documents_are_drawn_anew() -> None:
    """A sketch that was kept belongs to one topology."""
    panel = fleet()
    kept = Kept(panel)
    drawn(panel, kept)
    panel.want = panels.topology(panels.resource("cluster", "other"), digest="b" * 20)
    assert [one["id"] for one in drawn(panel, kept)["boxes"]] == ["cluster/other"]


def said(state: Literal["held", "waiting", "step"], blocker: str | None) -> answers.Said:
    return {"state": state, "reason": "R", "message": "m", "blocker": blocker}


BAD = panels.ready(Truth.FALSE, "Broken")


@pytest.mark.parametrize(
    ("judged", "planned", "state"),
    [
        (panels.ready(Truth.TRUE), said("held", "x/y"), "ready"),
        (BAD, said("waiting", None), "moving"),
        (None, said("step", None), "moving"),
        (BAD, said("held", "x/y"), "waiting"),
        (None, said("held", "x/y"), "waiting"),
        (BAD, said("held", None), "failing"),
        (BAD, None, "failing"),
        (panels.ready(Truth.FALSE, "Absent"), None, "absent"),
        (panels.ready(Truth.UNKNOWN, "NotObserved"), None, "unknown"),
        (None, None, "unknown"),
    ],
)
def test_what_one_thing_is_doing(
    judged: Condition | None, planned: answers.Said | None, state: str
) -> None:
    """Ready counts before all; then whether somebody works on it or it waits; then how it looks."""
    assert shapes.doing(judged, planned) == state
