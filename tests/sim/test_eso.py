"""The simulated External Secrets behaves as the real one was seen to, traps included."""

import asyncio
import base64
import hashlib
import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest

from fleetd.sim import loop
from fleetd.sim.controllers import eso_values
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.world import HttpRequest
from tests.drivers.openbao import stage
from tests.drivers.openbao.stage import Stage

EXTERNAL = ("external-secrets.io", "ExternalSecret")
PUSH = ("external-secrets.io", "PushSecret")
STORE = ("external-secrets.io", "ClusterSecretStore")
SECRET = ("", "Secret")
SPACE = "default"
PATH = "infrastructure/thing"
MANAGED = {"managed-by": "external-secrets"}


def played(story: Callable[[Stage, Cluster], Awaitable[None]]) -> None:
    """On the management cluster, with a store that is Valid and reads `infrastructure/*`."""

    async def run() -> None:
        async with stage.opened() as there:
            await there.stored("mgmt")
            await story(there, there.mgmt)

    loop.run(run())


def entry(there: Stage, path: str = PATH) -> Any:
    return there.bao.data.mounts["kv-v2/"].entries.get(path)


def write(there: Stage, value: str, path: str = PATH, custom: dict[str, str] | None = None) -> None:
    """As somebody with every right would."""
    token = next(one for one in there.bao.data.tokens.values() if "root" in one.policies)
    call = _ask(there, token.id)
    if custom is not None:
        call("POST", f"kv-v2/metadata/{path}", {"custom_metadata": custom})
    call("POST", f"kv-v2/data/{path}", {"data": {"p": value}})


def _ask(there: Stage, token: str) -> Callable[..., Any]:
    def call(method: str, path: str, body: Any = None) -> Any:
        request = HttpRequest(
            method=method,
            path=f"/v1/{path}",
            query={},
            headers={"x-vault-token": token},
            body=json.dumps(body).encode() if body is not None else b"",
        )
        answer = there.bao.handle(request)
        assert answer.status < 300, answer.body
        return answer

    return call


def external(cluster: Cluster, key: str = PATH, **spec: Any) -> None:
    property_ = spec.pop("property_", "p")
    body = {
        "apiVersion": "external-secrets.io/v1",
        "kind": "ExternalSecret",
        "metadata": {"name": "one", "namespace": SPACE},
        "spec": {
            "refreshInterval": "1h",
            "secretStoreRef": {"kind": "ClusterSecretStore", "name": "openbao-cluster-store"},
            "target": {"name": "made"},
            "data": [{"secretKey": "k", "remoteRef": {"key": key, "property": property_}}],
            **spec,
        },
    }
    cluster.apply(body, manager="test")


def pushes(cluster: Cluster, key: str = "push/here", **spec: Any) -> None:
    body = {
        "apiVersion": "external-secrets.io/v1alpha1",
        "kind": "PushSecret",
        "metadata": {"name": "one", "namespace": SPACE},
        "spec": {
            "refreshInterval": "1h",
            "secretStoreRefs": [{"kind": "ClusterSecretStore", "name": "openbao-cluster-store"}],
            "selector": {"secret": {"name": "source"}},
            "data": [
                {"match": {"secretKey": "k", "remoteRef": {"remoteKey": key, "property": "p"}}}
            ],
            **spec,
        },
    }
    cluster.apply(body, manager="test")


def source(cluster: Cluster, value: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "source", "namespace": SPACE},
        "data": {"k": base64.b64encode(value.encode()).decode()},
    }
    cluster.apply(body, manager="test")


def grant(there: Stage, **paths: tuple[str, ...]) -> None:
    """Adds rules to the policy of the cluster: `data` and `metadata` of push/here."""
    more = "".join(
        f'path "kv-v2/{what}/push/here" {{ capabilities = [{", ".join(map(repr, words))}] }}\n'
        for what, words in paths.items()
    ).replace("'", '"')
    there.bao.data.policies["eso-mgmt"] += more


def ready(cluster: Cluster, gk: tuple[str, str] = EXTERNAL, name: str = "one") -> tuple[str, ...]:
    found = cluster.get(gk, name, "" if gk == STORE else SPACE)
    assert found is not None
    told = eso_values.conditions(found).get("Ready", {})
    return tuple(str(told.get(key, "")) for key in ("status", "reason", "message"))


def events(cluster: Cluster, name: str = "one") -> str:
    return "\n".join(
        one["message"]
        for one in cluster.list(("", "Event"))
        if one["involvedObject"]["name"] == name
    )


def value(cluster: Cluster) -> str:
    found = cluster.get(SECRET, "made", SPACE)
    return base64.b64decode(found["data"]["k"]).decode() if found else ""


def touch(cluster: Cluster, gk: tuple[str, str], name: str, mark: str) -> None:
    def change(obj: dict[str, Any]) -> None:
        notes = obj["metadata"].setdefault("annotations", {})
        notes["external-secrets.io/force-sync"] = mark

    cluster.edit(gk, name, "" if gk == STORE else SPACE, change, manager="test")


def test_a_secret_is_fetched_and_its_hash_noted() -> None:
    """Ready SecretSynced, the value, and a data hash of how Go prints it."""

    async def story(there: Stage, cluster: Cluster) -> None:
        write(there, "hello")
        external(cluster)
        await asyncio.sleep(3)
        found = cluster.get(SECRET, "made", SPACE)
        assert ready(cluster) == ("True", "SecretSynced", "secret synced")
        assert found is not None
        assert value(cluster) == "hello"
        printed = b"map[k:[104 101 108 108 111]]"
        noted = found["metadata"]["annotations"]["reconcile.external-secrets.io/data-hash"]
        assert noted == hashlib.sha3_224(printed).hexdigest()

    played(story)


def test_the_interval_is_written_back_as_go_writes_it() -> None:
    """With its finalizer; so the generation is 2 at once."""

    async def story(there: Stage, cluster: Cluster) -> None:
        write(there, "hello")
        external(cluster)
        await asyncio.sleep(3)
        found = cluster.get(EXTERNAL, "one", SPACE)
        assert found is not None
        assert found["spec"]["refreshInterval"] == "1h0m0s"
        assert found["metadata"]["generation"] == 2

    played(story)


@pytest.mark.parametrize(
    ("key", "property_", "cause"),
    [
        ("infrastructure/nope", "p", "Secret does not exist"),
        (PATH, "nope", 'cannot find secret data for key: "nope"'),
        ("forbidden/thing", "p", "permission denied"),
    ],
)
def test_the_cause_is_only_in_an_event(key: str, property_: str, cause: str) -> None:
    """The condition says the same whatever happened."""

    async def story(there: Stage, cluster: Cluster) -> None:
        write(there, "hello")
        external(cluster, key, property_=property_)
        await asyncio.sleep(3)
        generic = ("False", "SecretSyncedError", "could not get secret data from provider")
        assert ready(cluster) == generic
        assert cause in events(cluster)

    played(story)


def test_a_new_value_comes_with_the_interval_or_with_a_poke() -> None:
    """An annotation is enough; syncedResourceVersion follows the poke, not the provider."""

    async def story(there: Stage, cluster: Cluster) -> None:
        write(there, "old")
        external(cluster)
        await asyncio.sleep(3)
        write(there, "new")
        await asyncio.sleep(600)
        before = value(cluster)
        version = (cluster.get(EXTERNAL, "one", SPACE) or {})["status"]["syncedResourceVersion"]
        touch(cluster, EXTERNAL, "one", "1")
        await asyncio.sleep(1)
        after = (cluster.get(EXTERNAL, "one", SPACE) or {})["status"]["syncedResourceVersion"]
        assert (before, value(cluster)) == ("old", "new")
        assert version != after

    played(story)


def test_an_interval_of_zero_is_deaf() -> None:
    """No poke makes it read again."""

    async def story(there: Stage, cluster: Cluster) -> None:
        write(there, "old")
        external(cluster, refreshInterval="0s")
        await asyncio.sleep(3)
        write(there, "new")
        touch(cluster, EXTERNAL, "one", "1")
        await asyncio.sleep(7200)
        assert value(cluster) == "old"

    played(story)


def test_a_tampered_secret_is_put_right() -> None:
    """At once, without any interval."""

    async def story(there: Stage, cluster: Cluster) -> None:
        write(there, "good")
        external(cluster)
        await asyncio.sleep(3)

        def spoil(obj: dict[str, Any]) -> None:
            obj["data"]["k"] = base64.b64encode(b"bad").decode()

        cluster.edit(SECRET, "made", SPACE, spoil, manager="somebody")
        await asyncio.sleep(1)
        assert value(cluster) == "good"

    played(story)


def test_recovery_follows_the_back_off() -> None:
    """After an outage it takes minutes by itself, and a second when store, then secret, are
    touched."""

    async def story(there: Stage, cluster: Cluster) -> None:
        write(there, "good")
        external(cluster, refreshInterval="10s")
        await asyncio.sleep(3)
        there.bao.seal()
        await asyncio.sleep(1000)
        sealed = (ready(cluster)[:2], ready(cluster, STORE, "openbao-cluster-store")[:2])
        for member in there.bao.members.all[:3]:
            for key in there.bao.data.shares[:3]:
                there.bao.members.unseal(member, {"key": key})
        await asyncio.sleep(12)
        only_secret = ready(cluster)[0]
        touch(cluster, EXTERNAL, "one", "1")
        await asyncio.sleep(2)
        still = ready(cluster)[0]
        touch(cluster, STORE, "openbao-cluster-store", "1")
        await asyncio.sleep(2)
        touch(cluster, EXTERNAL, "one", "2")
        await asyncio.sleep(2)
        assert sealed == (("False", "SecretSyncedError"), ("False", "InvalidProviderConfig"))
        assert "Vault is sealed" in events(cluster, "openbao-cluster-store")
        assert (only_secret, still) == ("False", "False")
        assert ready(cluster)[0] == "True"

    played(story)


@pytest.mark.parametrize(
    ("data", "metadata", "complaint"),
    [
        ((), (), "GET"),
        (("read", "update"), (), "PUT https://openbao-eu-1.sim:8200/v1/kv-v2/metadata/push/here"),
        (
            ("read",),
            ("create", "read", "update"),
            "PUT https://openbao-eu-1.sim:8200/v1/kv-v2/data",
        ),
        (("update",), ("create", "read", "update"), "cannot read secret data from Vault"),
    ],
)
def test_a_push_needs_all_its_grants(
    data: tuple[str, ...], metadata: tuple[str, ...], complaint: str
) -> None:
    """Data read and update, metadata create, read and update; the condition tells what lacks."""

    async def story(there: Stage, cluster: Cluster) -> None:
        grant(there, data=data, metadata=metadata)
        source(cluster, "value")
        pushes(cluster)
        await asyncio.sleep(3)
        status, reason, message = ready(cluster, PUSH)
        assert (status, reason) == ("False", "Errored")
        assert complaint in message
        assert "Code: 403" in message

    played(story)


def test_the_smallest_policy_pushes() -> None:
    """And a rotated source is carried on only after a poke or an interval."""

    async def story(there: Stage, cluster: Cluster) -> None:
        grant(there, data=("read", "update"), metadata=("create", "read", "update"))
        source(cluster, "old")
        pushes(cluster)
        await asyncio.sleep(3)
        first = entry(there, "push/here")
        versions = [first.current]
        source(cluster, "new")
        await asyncio.sleep(600)
        versions.append(entry(there, "push/here").current)
        touch(cluster, PUSH, "one", "1")
        await asyncio.sleep(1)
        versions.append(entry(there, "push/here").current)
        assert ready(cluster, PUSH) == ("True", "Synced", "PushSecret synced successfully")
        assert first.custom == MANAGED
        assert versions == [1, 1, 2]

    played(story)


def test_a_path_that_is_not_stamped_is_refused() -> None:
    """Somebody else's value is not overwritten."""

    async def story(there: Stage, cluster: Cluster) -> None:
        grant(there, data=("read", "update"), metadata=("create", "read", "update"))
        write(there, "theirs", "push/here")
        source(cluster, "ours")
        pushes(cluster)
        await asyncio.sleep(3)
        assert ready(cluster, PUSH)[2].endswith("secret not managed by external-secrets")
        assert entry(there, "push/here").current == 1

    played(story)


def test_a_missing_source_is_said() -> None:
    """Of a PushSecret, in its condition."""

    async def story(there: Stage, cluster: Cluster) -> None:
        del there
        pushes(cluster)
        await asyncio.sleep(3)
        assert ready(cluster, PUSH) == ("False", "Errored", "could not get source secret")

    played(story)


def test_retain_is_undone_by_garbage_collection() -> None:
    """The Secret of a deleted ExternalSecret goes with its owner, unless it has none."""

    async def story(there: Stage, cluster: Cluster) -> None:
        write(there, "good")
        left: list[bool] = []
        for policy in ("Owner", "Orphan"):
            target = {"name": "made", "creationPolicy": policy, "deletionPolicy": "Retain"}
            external(cluster, target=target)
            await asyncio.sleep(3)
            cluster.delete(EXTERNAL, "one", SPACE)
            await asyncio.sleep(5)
            left.append(cluster.get(SECRET, "made", SPACE) is not None)
        assert left == [False, True]

    played(story)


def test_the_time_of_a_refresh_stands_still_while_sealed() -> None:
    """The Secret stays, and the time is what tells."""

    async def story(there: Stage, cluster: Cluster) -> None:
        write(there, "good")
        external(cluster, refreshInterval="60s")
        await asyncio.sleep(10)
        there.bao.seal()
        sealed = there.world.now()
        await asyncio.sleep(3600)
        found = cluster.get(EXTERNAL, "one", SPACE)
        assert found is not None
        assert value(cluster) == "good"
        assert datetime.fromisoformat(found["status"]["refreshTime"]) <= sealed

    played(story)
