"""The simulated API server from inside: what its controllers rely on."""

from datetime import timedelta
from typing import Any

import pytest

from fleetd.kube.transport import Response
from fleetd.sim.kube import refusal
from fleetd.sim.kube.access import User
from fleetd.sim.kube.calls import Call
from fleetd.sim.kube.cluster import Change
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.refusal import Refused
from tests.sim.kube.stage import MAP, SHOOT, Obj, Stage, config_map, shoot

MAPS = "/api/v1/namespaces/default/configmaps"
SHOOTS = f"/apis/{SHOOT[0]}/v1beta1/namespaces/default/shoots"


def _story(stage: Stage) -> list[tuple[str, str, str, str]]:
    told: list[tuple[str, str, str, str]] = []

    def hear(change: Change) -> None:
        metadata = change.object["metadata"]
        told.append((change.type, metadata["name"], metadata["uid"], metadata["resourceVersion"]))

    stage.cluster.subscribe(hear)
    return told


def _live(stage: Stage) -> None:
    cluster = stage.cluster
    owner = cluster.create(shoot("owner"), manager="m")
    reference = {"kind": "Shoot", "name": "owner", "uid": owner["metadata"]["uid"]}
    for number in range(5):
        body = config_map(f"c{number}", ownerReferences=[{"apiVersion": "v1", **reference}])
        cluster.create(body, manager="m")
    cluster.create(
        {**config_map(""), "metadata": {"generateName": "g-", "namespace": "default"}}, manager="m"
    )
    cluster.delete(SHOOT, "owner", "default")
    stage.time.pass_(5)


def test_same_calls_same_story() -> None:
    """Names, uids, versions and the order of collection follow from the calls alone."""
    stories: list[Any] = []
    for _ in range(2):
        stage = Stage()
        told = _story(stage)
        _live(stage)
        stories.append((told, stage.cluster.admin_token()))

    assert stories[0] == stories[1]
    assert [name for kind, name, _, _ in stories[0][0] if kind == "DELETED"] == [
        *("owner", "c0", "c1", "c2", "c3", "c4")
    ]


def test_stored_objects_are_replaced_not_changed() -> None:
    """What was read before an edit stays as it was."""
    stage = Stage()
    before = stage.cluster.create(shoot(), manager="m")

    def grow(obj: Obj) -> None:
        obj["spec"]["workers"] = [{"name": "w"}]

    after = stage.cluster.edit(SHOOT, "a", "default", grow, manager="m")

    assert "workers" not in before["spec"]
    assert after is not None
    assert after["spec"]["workers"] == [{"name": "w"}]


def test_argument_of_create_stays_the_callers() -> None:
    """Changing a body after create does not change what is stored."""
    stage = Stage()
    body = shoot()
    stage.cluster.create(body, manager="m")
    body["spec"]["region"] = "elsewhere"
    found = stage.cluster.get(SHOOT, "a", "default")

    assert found is not None
    assert found["spec"]["region"] == "here"


def test_edit_that_changes_nothing_tells_nobody() -> None:
    """An edit without effect gives the same object and no change."""
    stage = Stage()
    made = stage.cluster.create(shoot(), manager="m")
    told = _story(stage)
    same = stage.cluster.edit(SHOOT, "a", "default", lambda _obj: None, manager="m")

    assert same is made
    assert told == []


def test_status_edit_reaches_the_status_only() -> None:
    """`edit(status=True)` drops changes elsewhere; generation stays."""
    stage = Stage()
    stage.cluster.create(shoot(), manager="m")

    def change(obj: Obj) -> None:
        obj["spec"]["region"] = "elsewhere"
        obj["status"] = {"phase": "Good"}

    after = stage.cluster.edit(SHOOT, "a", "default", change, manager="m", status=True)

    assert after is not None
    assert after["spec"] == {"region": "here"}
    assert after["status"] == {"phase": "Good"}
    assert after["metadata"]["generation"] == 1


def test_listeners_hear_in_order() -> None:
    """A change made by a listener is told after the one it heard."""
    stage = Stage()
    heard: list[str] = []

    def answer(change: Change) -> None:
        if change.object["metadata"]["name"] == "first":
            stage.cluster.create(config_map("second"), manager="m")

    stage.cluster.subscribe(answer)
    stage.cluster.subscribe(lambda change: heard.append(change.object["metadata"]["name"]))
    stage.cluster.create(config_map("first"), manager="m")

    assert heard == ["first", "second"]


def test_admission_refuses() -> None:
    """A hook that refuses keeps a write out, over HTTP as from inside."""
    stage = Stage()

    def refuse(operation: str, new: Obj | None, old: Obj | None, user: User) -> Obj | None:
        if operation == "DELETE":
            raise Refused(403, "Forbidden", "not without confirmation")
        return None

    stage.cluster.admit(SHOOT, refuse)
    stage.cluster.create(shoot(), manager="m")
    status, said = stage.ask("DELETE", f"{SHOOTS}/a")

    assert (status, said["message"]) == (403, "not without confirmation")
    with pytest.raises(Refused):
        stage.cluster.delete(SHOOT, "a", "default")
    assert stage.cluster.get(SHOOT, "a", "default") is not None


def test_admission_fills_in() -> None:
    """A hook's object is the one that is stored; it knows who asks."""
    stage = Stage()

    def fill(operation: str, new: Obj | None, old: Obj | None, user: User) -> Obj | None:
        if operation != "CREATE" or new is None:
            return None
        return {**new, "spec": {**new["spec"], "createdBy": user.name}}

    stage.cluster.admit(SHOOT, fill)
    status, made = stage.ask("POST", SHOOTS, shoot())

    assert status == 201
    assert made["spec"]["createdBy"] == "admin"


def test_immutable_paths() -> None:
    """A path that is declared immutable cannot change once it is set."""
    stage = Stage()
    stage.cluster.create(shoot(), manager="m")
    status, said = stage.ask(
        "PATCH", f"{SHOOTS}/a", {"spec": {"region": "x"}}, "application/merge-patch+json"
    )

    assert status == 422
    assert said["message"] == (
        f'Shoot.{SHOOT[0]} "a" is invalid: spec.region: Invalid value: "x": field is immutable'
    )


def test_own_rule_for_the_generation() -> None:
    """A definition may say what counts as a new generation."""
    stage = Stage()
    stage.cluster.serve(
        Definition(
            group="x.example",
            kind="Quiet",
            plural="quiets",
            bumps=lambda old, new: old["spec"].get("loud") != new["spec"].get("loud"),
        )
    )
    gk = ("x.example", "Quiet")
    body = {
        "apiVersion": "x.example/v1",
        "kind": "Quiet",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {},
    }
    stage.cluster.create(body, manager="m")
    generations: list[int] = []
    for field in ("soft", "loud"):
        edited = stage.cluster.edit(
            gk, "a", "default", lambda obj, name=field: obj["spec"].update({name: 1}), manager="m"
        )
        assert edited is not None
        generations.append(edited["metadata"]["generation"])

    assert generations == [1, 2]


def test_custom_subresource() -> None:
    """A handler answers for a subresource and sees the request; unknown objects are 404."""
    stage = Stage()

    def kubeconfig(obj: Obj, call: Call, user: User) -> tuple[int, Obj]:
        return 201, {"for": obj["metadata"]["name"], "by": user.name, **call.body()}

    stage.cluster.subresource(SHOOT, "adminkubeconfig", kubeconfig)
    stage.cluster.create(shoot(), manager="m")

    assert stage.ask("POST", f"{SHOOTS}/a/adminkubeconfig", {"spec": 1}) == (
        201,
        {"for": "a", "by": "admin", "spec": 1},
    )
    assert stage.ask("POST", f"{SHOOTS}/nothing/adminkubeconfig", {})[0] == 404
    assert stage.ask("POST", f"{SHOOTS}/a/other", {})[0] == 404


def test_other_version_of_a_kind() -> None:
    """An object is the same in every served version, but for the name of it."""
    stage = Stage()
    stage.cluster.create(shoot(), manager="m")
    other = f"/apis/{SHOOT[0]}/v1alpha1/namespaces/default/shoots"
    _, one = stage.ask("GET", f"{other}/a")
    _, many = stage.ask("GET", other)

    assert one["apiVersion"] == f"{SHOOT[0]}/v1alpha1"
    assert many["items"][0]["apiVersion"] == f"{SHOOT[0]}/v1alpha1"
    assert one["spec"] == {"region": "here"}


def test_unserved_kind_is_gone() -> None:
    """A kind that is not served any more answers 404, and its watches end."""
    stage = Stage()
    watch = stage.watch(SHOOTS)
    stage.cluster.unserve(*SHOOT)

    assert watch.ended
    assert stage.cluster.list(SHOOT) == []
    assert not isinstance(stage.open("GET", SHOOTS), type(watch))


def test_what_is_served_is_told_at_once() -> None:
    """Though nothing is worked out again while kinds stay the same."""
    stage = Stage()
    told: list[bool] = []

    def tell() -> None:
        answer = stage.open("GET", "/apis")
        assert isinstance(answer, Response)
        told.append(b"x.example" in answer.body)

    tell()
    stage.cluster.serve(Definition(group="x.example", kind="Quiet", plural="quiets"))
    tell()
    stage.cluster.unserve("x.example", "Quiet")
    tell()

    assert told == [False, True, False]


def test_unknown_kind_is_refused() -> None:
    """Creating an object of a kind nobody serves raises a refusal, not a KeyError."""
    stage = Stage()
    with pytest.raises(refusal.Refused) as caught:
        stage.cluster.create({**config_map(), "kind": "Nothing"}, manager="m")

    assert caught.value.status == 404


def test_writes_are_counted_by_user() -> None:
    """Only changes that were committed through HTTP count, not reads, refusals or dry runs."""
    stage = Stage()
    stage.cluster.create(config_map("inside"), manager="m")
    stage.ask("POST", MAPS, config_map("a"))
    stage.ask("POST", MAPS, config_map("a"))
    stage.ask("POST", MAPS, config_map("b"), dryRun="All")
    stage.ask("GET", MAPS)
    merge = "application/merge-patch+json"
    stage.ask("PATCH", f"{MAPS}/a", {"data": {"x": "1"}}, merge)
    stage.ask("PATCH", f"{MAPS}/a", {"data": {"x": "1"}}, merge)
    stage.ask("DELETE", f"{MAPS}/a")

    assert stage.cluster.writes == {"admin": 3}


def test_every_request_is_logged() -> None:
    """The log hook hears user, request and status, also of refusals."""
    stage = Stage()
    heard: list[tuple[str, str, int]] = []
    stage.cluster.log = lambda user, request, status: heard.append(
        (user, f"{request.method} {request.path}", status)
    )
    stage.ask("GET", f"{MAPS}/a")
    stage.headers = {}
    stage.ask("GET", MAPS)

    assert heard == [
        ("admin", f"GET {MAPS}/a", 404),
        ("system:anonymous", f"GET {MAPS}", 401),
    ]


def test_token_ends() -> None:
    """A token is good until the moment it expires."""
    stage = Stage()
    expires = stage.time.now() + timedelta(seconds=60)
    token = stage.cluster.token("somebody", ("system:masters",), expires=expires)
    stage.headers = stage.as_user(token)
    before = stage.ask("GET", MAPS)[0]
    stage.time.pass_(60)

    assert (before, stage.ask("GET", MAPS)[0]) == (200, 401)


def test_account_token_outlives_its_account_by_ten_seconds() -> None:
    """The token of a deleted ServiceAccount works for ten seconds, and then no more."""
    stage = Stage()
    path = "/api/v1/namespaces/default/serviceaccounts"
    stage.ask("POST", path, {"metadata": {"name": "robot"}})
    _, given = stage.ask("POST", f"{path}/robot/token", {"spec": {}})
    stage.ask("DELETE", f"{path}/robot")
    stage.headers = stage.as_user(given["status"]["token"])
    answers: list[int] = []
    for _ in range(3):
        answers.append(stage.ask("GET", MAPS)[0])
        stage.time.pass_(6)

    assert answers == [200, 200, 401]


def test_apply_from_inside_conflicts_unless_forced() -> None:
    """Controllers are owners like everybody."""
    stage = Stage()
    stage.cluster.apply(config_map("a", {"x": "1"}), manager="one")
    with pytest.raises(Refused) as caught:
        stage.cluster.apply(config_map("a", {"x": "2"}), manager="two", force=False)
    forced = stage.cluster.apply(config_map("a", {"x": "2"}), manager="two")

    assert caught.value.status == 409
    assert forced["data"] == {"x": "2"}


def test_last_finalizer_from_inside() -> None:
    """remove_finalizer lets a marked object go, and only that one finalizer."""
    stage = Stage()
    stage.cluster.create(shoot(finalizers=["one", "two"]), manager="m")
    stage.cluster.delete(SHOOT, "a", "default")
    left = stage.cluster.remove_finalizer(SHOOT, "a", "default", "one")
    still = stage.cluster.get(SHOOT, "a", "default")
    stage.cluster.remove_finalizer(SHOOT, "a", "default", "two")

    assert left is not None
    assert left["metadata"]["finalizers"] == ["two"]
    assert still is not None
    assert stage.cluster.get(SHOOT, "a", "default") is None


def test_graceful_kind_ends_later() -> None:
    """A kind that ends gracefully is only marked; a delete without grace ends it."""
    stage = Stage()
    stage.cluster.graceful(("", "Pod"), lambda _pod: 30)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}}
    stage.cluster.create(pod, manager="m")
    path = "/api/v1/namespaces/default/pods/p"
    _, marked = stage.ask("DELETE", path)
    stage.ask("DELETE", path, {"gracePeriodSeconds": 0})

    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    assert stage.cluster.get(("", "Pod"), "p", "default") is None


def test_list_by_labels() -> None:
    """The list for controllers takes labels and is in order."""
    stage = Stage()
    for name in "cab":
        stage.cluster.create(config_map(name, labels={"mine": "yes"}), manager="m")
    stage.cluster.create(config_map("d"), manager="m")
    found = stage.cluster.list(MAP, "default", {"mine": "yes"})

    assert [obj["metadata"]["name"] for obj in found] == ["a", "b", "c"]
