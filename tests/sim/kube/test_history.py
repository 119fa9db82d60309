"""What the simulated server remembers, and what it has forgotten."""

from fleetd.kube.transport import Response
from fleetd.sim.kube import store
from tests.sim.kube.stage import MAP, Stage, config_map, lines

MAPS = "/api/v1/namespaces/default/configmaps"


def test_history_is_bounded() -> None:
    """A watch from further back than the history is told 410; from within it sees all."""
    stage = Stage()
    start = stage.cluster.store.version
    stage.cluster.create(config_map("a"), manager="m")
    for number in range(store.HISTORY):
        stage.cluster.edit(
            MAP,
            "a",
            "default",
            lambda obj, value=str(number): obj["data"].update(x=value),
            manager="m",
        )
    too_far = lines(stage.watch(MAPS, resourceVersion=str(start)))
    enough = lines(stage.watch(MAPS, resourceVersion=str(start + 1)))

    assert [event["object"]["code"] for event in too_far] == [410]
    assert len(enough) == store.HISTORY


def test_forgotten_history() -> None:
    """After a compaction older versions and continue tokens answer 410."""
    stage = Stage()
    for name in "abc":
        stage.cluster.create(config_map(name), manager="m")
    _, first = stage.ask("GET", MAPS, limit="1")
    version = first["metadata"]["resourceVersion"]
    stage.cluster.create(config_map("d"), manager="m")
    stage.cluster.forget_history()
    status, said = stage.ask("GET", MAPS, **{"continue": first["metadata"]["continue"]})
    events = lines(stage.watch(MAPS, resourceVersion=version))

    assert (status, said["reason"]) == (410, "Expired")
    assert [event["object"]["reason"] for event in events] == ["Expired"]


def test_watch_from_now_after_a_compaction() -> None:
    """The present version is never too old."""
    stage = Stage()
    stage.cluster.create(config_map("a"), manager="m")
    stage.cluster.forget_history()
    _, listed = stage.ask("GET", MAPS)
    watch = stage.watch(MAPS, resourceVersion=listed["metadata"]["resourceVersion"])
    stage.cluster.create(config_map("b"), manager="m")

    assert [event["type"] for event in lines(watch)] == ["ADDED"]


def test_bookmarks_stop_with_the_watch() -> None:
    """Bookmarks come at their interval, as long as somebody wants them."""
    stage = Stage(bookmark_every=10.0)
    watch = stage.watch(MAPS, allowWatchBookmarks="true", timeoutSeconds="100")
    stage.time.pass_(25)
    first = [event["type"] for event in lines(watch)]
    watch.close()
    stage.time.pass_(1000)

    assert first == ["BOOKMARK", "BOOKMARK"]
    assert lines(watch) == []


def test_last_bookmark_before_the_end() -> None:
    """A watch that runs out says where to go on."""
    stage = Stage()
    watch = stage.watch(MAPS, allowWatchBookmarks="true", timeoutSeconds="5")
    stage.cluster.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}, manager="m"
    )
    stage.time.pass_(5)
    events = lines(watch)

    assert watch.ended
    assert [event["type"] for event in events] == ["BOOKMARK"]
    assert events[0]["object"]["metadata"]["resourceVersion"] == str(stage.cluster.store.version)


def test_reader_that_left_costs_nothing() -> None:
    """A closed watch is forgotten by its kind."""
    stage = Stage()
    watch = stage.watch(MAPS)
    watch.close()

    assert stage.cluster.table(MAP).watchers == []


def test_restart_ends_watches() -> None:
    """`end_watches` ends all of them; what was said before can still be read."""
    stage = Stage()
    watch = stage.watch(MAPS)
    stage.cluster.create(config_map("a"), manager="m")
    stage.cluster.end_watches()
    stage.cluster.create(config_map("b"), manager="m")

    assert watch.ended
    assert [event["object"]["metadata"]["name"] for event in lines(watch)] == ["a"]


def test_watch_from_the_future() -> None:
    """A version that is not there yet is answered with 504."""
    stage = Stage()
    answer = stage.open("GET", MAPS, watch="1", resourceVersion="99999999")

    assert isinstance(answer, Response)
    assert answer.status == 504
