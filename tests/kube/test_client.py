"""What the client makes of a server's answers, and what it sends."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec
import pytest

from fleetd.kube import errors, transport
from fleetd.kube.client import KubeClient
from fleetd.kube.kinds import Discovery, Kind
from fleetd.kube.transport import Request, Response
from fleetd.sim import loop
from tests.kube.shelf import BOX, GROUP, Object, Shelf

POD = Kind("", "v1", "Pod", "pods", namespaced=True)
NODE = Kind("", "v1", "Node", "nodes", namespaced=False)


@pytest.mark.parametrize(
    ("kind", "where", "path"),
    [
        (POD, {}, "/api/v1/pods"),
        (POD, {"namespace": "ns"}, "/api/v1/namespaces/ns/pods"),
        (POD, {"name": "a", "namespace": "ns"}, "/api/v1/namespaces/ns/pods/a"),
        (NODE, {"name": "n", "namespace": "ns"}, "/api/v1/nodes/n"),
        (BOX, {"name": "a", "namespace": "ns", "subresource": "status"},
         "/apis/toy.example/v1/namespaces/ns/boxes/a/status"),
        (NODE, {"name": "system:x/../y%"}, "/api/v1/nodes/system%3Ax%2F..%2Fy%25"),
    ],
)  # fmt: skip
def test_a_path_leads_to_the_object_and_nowhere_else(
    kind: Kind, where: dict[str, str], path: str
) -> None:
    """Names are encoded, so that none of them can mean another place."""
    assert kind.path(**where) == path


@pytest.mark.parametrize(
    ("kind", "name", "namespace"), [(NODE, "..", ""), (POD, "a", ""), (POD, "a", "..")]
)
def test_a_path_that_would_lead_astray_is_refused(kind: Kind, name: str, namespace: str) -> None:
    """Two dots, or a name without its namespace, are no object."""
    with pytest.raises(errors.Invalid):
        kind.path(name, namespace)


class Canned:
    """Answers each path with what it was given; what it was not given is not found."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        self.answers: dict[str, Any] = dict(answers)
        self.got: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.got.append(request)
        await asyncio.sleep(0.01)
        answer = self.answers.get(request.path)
        if isinstance(answer, Response):
            return answer
        if answer is None:
            return Response(status=404, body=b"404 page not found\n")
        return Response(status=200, body=msgspec.json.encode(answer))

    def lines(self, request: Request) -> Any:
        raise NotImplementedError

    async def close(self) -> None: ...


def _resources(*kinds: str) -> Object:
    return {"resources": [{"name": f"{kind.lower()}s", "kind": kind} for kind in kinds]}


def _groups(name: str, *versions: str, preferred: str) -> Object:
    listed = [{"version": version} for version in versions]
    return {
        "groups": [{"name": name, "versions": listed, "preferredVersion": {"version": preferred}}]
    }


def test_the_preferred_version_that_serves_a_kind_is_taken() -> None:
    """The server's order decides, and a kind it has only in another version is found there."""

    async def main() -> list[Kind]:
        canned = Canned({
            "/apis": _groups("g", "v1beta1", "v2", "v1", preferred="v1"),
            "/apis/g/v1": _resources("Both"),
            "/apis/g/v1beta1": _resources("Both", "Old"),
            "/apis/g/v2": _resources("Both", "Old", "New"),
            "/api/v1": {"resources": [
                {"name": "pods", "kind": "Pod", "namespaced": True},
                {"name": "pods/eviction", "kind": "Eviction", "namespaced": True},
            ]},
        })  # fmt: skip
        found = Discovery(canned)
        kinds = [("g", "Both"), ("g", "Old"), ("g", "New"), ("g", "Both"), ("", "Pod")]
        return [await found.find(*kind) for kind in kinds]

    both = Kind("g", "v1", "Both", "boths", namespaced=False)
    old = Kind("g", "v1beta1", "Old", "olds", namespaced=False)
    new = Kind("g", "v2", "New", "news", namespaced=False)
    assert loop.run(main()) == [both, old, new, both, POD]


def test_a_version_that_we_speak_goes_before_the_servers_choice() -> None:
    """Of one kind, and of the others of its group that are learnt by the way."""

    async def main() -> list[str]:
        group = "garage.rajsingh.info"
        canned = Canned({
            "/apis": _groups(group, "v2", "v1beta2", "v1beta1", preferred="v2"),
            f"/apis/{group}/v2": _resources("GarageCluster", "GarageBucket"),
            f"/apis/{group}/v1beta2": _resources("GarageCluster", "GarageBucket"),
            f"/apis/{group}/v1beta1": _resources("GarageCluster", "GarageBucket"),
        })  # fmt: skip
        found = Discovery(canned)
        kinds = ("GarageBucket", "GarageCluster")
        return [(await found.find(group, kind)).version for kind in kinds]

    assert loop.run(main()) == ["v1beta1", "v1beta2"]


def test_a_kind_in_other_versions_only_is_not_taken_for_ours() -> None:
    """What is served and what we speak is said; another release that brings ours is found."""

    async def main() -> tuple[str, str]:
        group = "helm.toolkit.fluxcd.io"
        canned = Canned({
            "/apis": _groups(group, "v2beta1", "v2beta2", preferred="v2beta2"),
            f"/apis/{group}/v2beta1": _resources("HelmRelease"),
            f"/apis/{group}/v2beta2": _resources("HelmRelease"),
        })  # fmt: skip
        found = Discovery(canned)
        with pytest.raises(errors.OtherVersion) as caught:
            await found.find(group, "HelmRelease")
        canned.answers["/apis"] = _groups(group, "v2beta2", "v2", preferred="v2beta2")
        canned.answers[f"/apis/{group}/v2"] = _resources("HelmRelease")
        return str(caught.value), (await found.find(group, "HelmRelease")).version

    said, version = loop.run(main())
    assert "HelmRelease of group helm.toolkit.fluxcd.io in v2beta2, v2beta1 only" in said
    assert "fleetd speaks v2:" in said
    assert version == "v2"


def test_a_kind_that_is_not_served_is_asked_for_again() -> None:
    """It is said in words, and found as soon as its definition is installed."""

    async def main() -> tuple[list[str], Kind]:
        canned = Canned({"/api/v1": _resources("Pod"), "/apis": {"groups": []}})
        found = Discovery(canned)
        said: list[str] = []
        for kind in (("g", "Thing"), ("", "Thing")):
            with pytest.raises(errors.NotFound) as caught:
                await found.find(*kind)
            said.append(str(caught.value))
        canned.answers["/apis"] = _groups("g", "v1", preferred="v1")
        canned.answers["/apis/g/v1"] = _resources("Thing")
        return said, await found.find("g", "Thing")

    said, kind = loop.run(main())
    assert said == [
        f"the server does not serve Thing of {of}; what brings it is not installed, or not up"
        for of in ("group g", "the core group")
    ]
    assert kind == Kind("g", "v1", "Thing", "things", namespaced=False)


def test_an_aggregated_api_that_is_away_is_not_an_unknown_kind() -> None:
    """A 503 for the group's version means that nobody knows."""

    async def main() -> None:
        away = Response(status=503, body=b"service unavailable\n")
        canned = Canned({"/apis": _groups("g", "v1", preferred="v1"), "/apis/g/v1": away})
        await Discovery(canned).find("g", "Thing")

    with pytest.raises(errors.ServerFault, match="service unavailable"):
        loop.run(main())


def test_many_who_ask_at_once_cost_one_question() -> None:
    """A thousand readers that start together do not ask a thousand times."""

    async def main() -> int:
        canned = Canned({"/api/v1": _resources("Pod")})
        found = Discovery(canned)
        async with asyncio.TaskGroup() as group:
            for number in range(50):
                group.create_task(found.find("", "Pod"), name=str(number))
        return len(canned.got)

    assert loop.run(main()) == 1


def test_a_kind_whose_path_is_gone_is_found_anew() -> None:
    """A 404 without a Status is not a missing object: the kind has moved."""

    async def main() -> list[Any]:
        canned = Canned({
            "/apis": _groups("g", "v1", preferred="v1"),
            "/apis/g/v1": _resources("Thing"),
        })  # fmt: skip
        client = KubeClient(canned)
        old = await client.find("g", "Thing")
        canned.answers = {
            "/apis": _groups("g", "v2", preferred="v2"),
            "/apis/g/v2": _resources("Thing"),
        }
        with pytest.raises(errors.NotFound):
            await client.get(old, "a")
        return [old.version, (await client.find("g", "Thing")).version]

    assert loop.run(main()) == ["v1", "v2"]


def test_a_missing_object_is_none_and_not_an_error() -> None:
    """Absence is an answer; so is deleting what is not there."""

    async def main() -> list[Any]:
        client = KubeClient(Shelf())
        return [await client.get(BOX, "a", "ns"), await client.delete(BOX, "a", "ns")]

    assert loop.run(main()) == [None, False]


def test_a_long_list_comes_whole_and_says_what_its_items_are() -> None:
    """Pages are put together, and items that are listed without a kind get theirs."""

    async def main() -> tuple[list[str], set[tuple[str, str]], str]:
        shelf = Shelf()
        for number in range(7):
            shelf.put(f"b{number}")
        listing = await KubeClient(shelf).list(BOX, limit=3)
        items = [one.object() for one in listing.items]
        names = [one["metadata"]["name"] for one in items]
        return names, {(one["apiVersion"], one["kind"]) for one in items}, listing.version

    names, kinds, version = loop.run(main())
    assert names == [f"b{number}" for number in range(7)]
    assert kinds == {("toy.example/v1", "Box")}
    assert version == "107"


def test_a_list_that_outlives_the_servers_memory_starts_over_once() -> None:
    """The moment of the first page is forgotten between two pages: begin again, and have all."""

    async def main() -> tuple[list[str], int]:
        shelf = Shelf()
        for number in range(5):
            shelf.put(f"b{number}")
        shelf.after_list = [{"name": "later"}]
        shelf.oldest = shelf.version + 1
        listing = await KubeClient(shelf).list(BOX, limit=3)
        return [one.name for one in listing.items], shelf.served["list"]

    assert loop.run(main()) == (["b0", "b1", "b2", "b3", "b4", "later"], 2)


def test_a_list_that_is_always_too_old_is_an_error() -> None:
    """It starts over once, not for ever."""

    async def main() -> None:
        shelf = Shelf()
        for number in range(5):
            shelf.put(f"b{number}")
        shelf.oldest = 10_000
        await KubeClient(shelf).list(BOX, limit=3)

    with pytest.raises(errors.Gone):
        loop.run(main())


def _sent(call: Callable[[KubeClient], Coroutine[Any, Any, object]]) -> Request:
    async def main() -> Request:
        shelf = Shelf()
        shelf.put("old")
        await call(KubeClient(shelf))
        return shelf.writes[-1]

    return loop.run(main())


def test_apply_says_who_writes_and_what_it_is() -> None:
    """A manifest without a version gets the one the server has; force only where it is said."""
    body = {"apiVersion": GROUP, "kind": "Box", "metadata": {"name": "a", "namespace": "ns"}}

    request = _sent(lambda client: client.apply(BOX, body))
    forced = _sent(lambda client: client.apply(BOX, body, force=True, dry_run=True))

    assert (request.method, request.path) == (
        "PATCH",
        "/apis/toy.example/v1/namespaces/ns/boxes/a",
    )
    assert request.content_type == transport.APPLY
    assert dict(request.query) == {"fieldManager": "fleetd"}
    assert msgspec.json.decode(request.body)["apiVersion"] == "toy.example/v1"
    assert dict(forced.query) == {"fieldManager": "fleetd", "force": "true", "dryRun": "All"}


def test_a_deletion_names_the_object_it_means() -> None:
    """With a uid, an object of the same name that came later is not deleted."""

    async def main() -> Object:
        shelf = Shelf()
        shelf.put("a")
        client = KubeClient(shelf)
        with pytest.raises(errors.Conflict):
            await client.delete(BOX, "a", "ns", uid="uid-of-another")
        assert await client.delete(BOX, "a", "ns", uid="uid-1")
        return msgspec.json.decode(shelf.writes[-1].body)

    body = loop.run(main())
    assert body["preconditions"] == {"uid": "uid-1"}
    assert body["propagationPolicy"] == "Background"


def test_other_writes_go_where_they_should() -> None:
    """Create, merge patch and replace have their own method and path."""
    box = {"metadata": {"name": "new", "namespace": "ns"}, "spec": {}}
    sent = [
        _sent(lambda client: client.create(BOX, box)),
        _sent(lambda client: client.patch(BOX, "old", {"spec": {}}, "ns")),
        _sent(lambda client: client.replace(BOX, box, subresource="status")),
    ]

    assert [(one.method, one.path.removeprefix("/apis/toy.example/v1/")) for one in sent] == [
        ("POST", "namespaces/ns/boxes"),
        ("PATCH", "namespaces/ns/boxes/old"),
        ("PUT", "namespaces/ns/boxes/new/status"),
    ]
    assert sent[1].content_type == transport.MERGE


class Ear:
    """A listener that keeps what it heard."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def wrote(self, kind: Kind, obj: Object, told: Any = None) -> None:
        assert told is None or told.name == obj["metadata"]["name"]
        self.heard.append((kind.kind, obj["metadata"]["name"]))

    def deleted(self, kind: Kind, name: str, namespace: str, uid: str) -> None:
        self.heard.append((f"no {kind.kind}", f"{namespace}/{name} {uid}"))


def test_whoever_listens_hears_of_every_write_that_counts() -> None:
    """Writes and deletions are told; dry runs, and what was not there, are not."""

    async def main() -> list[tuple[str, str]]:
        ear = Ear()
        client = KubeClient(Shelf(), listener=ear)
        box: Object = {"metadata": {"name": "a", "namespace": "ns"}}
        await client.apply(BOX, box, dry_run=True)
        await client.apply(BOX, box)
        await client.patch(BOX, "a", {"spec": {}}, "ns")
        await client.delete(BOX, "a", "ns")
        await client.delete(BOX, "a", "ns")
        return ear.heard

    assert loop.run(main()) == [("Box", "a"), ("Box", "a"), ("no Box", "ns/a uid-1")]


def test_an_answer_about_something_else_is_not_taken_for_the_object() -> None:
    """A Scale has the name of the object it scales, and is not it."""

    async def main() -> list[tuple[str, str]]:
        ear = Ear()
        scale: Object = {"kind": "Scale", "metadata": {"name": "a"}}
        client = KubeClient(Canned({"/api/v1/nodes/a/scale": scale}), listener=ear)
        await client.patch(NODE, "a", {"spec": {}}, subresource="scale")
        return ear.heard

    assert loop.run(main()) == []


def test_a_body_that_is_no_json_is_not_from_an_api_server() -> None:
    """A proxy's page with status 200 is no answer."""

    async def main(call: str) -> None:
        page = Response(status=200, body=b"<html>hello</html>")
        client = KubeClient(Canned({"/api/v1/nodes": page, "/api/v1/nodes/a": page}))
        if call == "list":
            await client.list(NODE)
        else:
            await client.get(NODE, "a")

    for call in ("list", "get"):
        with pytest.raises(errors.Unreachable, match="as no API server does"):
            loop.run(main(call))


def test_raw_and_post_reach_any_path() -> None:
    """For what is not an object: bytes as they are, and a request with an answer of its own."""

    async def main() -> tuple[bytes, Object, bytes]:
        token: Object = {"kind": "TokenRequest", "status": {}}
        canned = Canned({"/readyz": Response(status=200, body=b"ok"), "/x/token": token})
        client = KubeClient(canned)
        answer = await client.raw("/readyz"), await client.post("/x/token", {"spec": {}})
        return *answer, canned.got[-1].body

    assert loop.run(main()) == (b"ok", {"kind": "TokenRequest", "status": {}}, b'{"spec":{}}')
