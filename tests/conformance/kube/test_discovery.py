"""What a server says about itself."""

import pytest

from tests.conformance.kube.api import Api, Kind, until


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
async def test_server_is_well(api: Api, path: str) -> None:
    """Health is answered with 200 and `ok`."""
    answer = await api.get(path)

    assert (answer.status, answer.body) == (200, b"ok")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez", "/version"])
async def test_anybody_may_ask_how_it_is(api: Api, path: str) -> None:
    """Load balancers and kubelets do, without a token."""
    assert (await api.as_user("").get(path)).status == 200


async def test_single_checks_are_not_for_everybody(api: Api) -> None:
    """One part of how it is can be asked for by whoever may, and by nobody without a token."""
    strangers, ours = await api.as_user("").get("/livez/ping"), await api.get("/livez/ping")

    assert (strangers.status, ours.status, ours.body) == (401, 200, b"ok")


async def test_version(api: Api) -> None:
    """The version has major and minor."""
    version = (await api.get("/version")).json

    assert version["major"] == "1"
    assert version["minor"].rstrip("+").isdecimal()


async def test_core_group(api: Api) -> None:
    """The core group says its kinds, with verbs, short names and subresources."""
    versions = await api.get("/api")
    answer = await api.get("/api/v1")
    found = {one["name"]: one for one in answer.json["resources"]}

    assert versions.json["versions"] == ["v1"]
    assert answer.json["groupVersion"] == "v1"
    assert found["configmaps"]["shortNames"] == ["cm"]
    assert found["nodes"]["namespaced"] is False
    assert {"get", "list", "watch", "patch"} <= set(found["secrets"]["verbs"])
    assert "serviceaccounts/token" in found
    assert "namespaces/status" in found


async def test_groups(api: Api) -> None:
    """Every group has versions and a preferred one."""
    groups = {group["name"]: group for group in (await api.get("/apis")).json["groups"]}

    assert groups["apps"]["preferredVersion"]["groupVersion"] == "apps/v1"
    assert "rbac.authorization.k8s.io" in groups
    assert "coordination.k8s.io" in groups


async def test_one_group(api: Api) -> None:
    """A group can be asked for alone."""
    answer = await api.get("/apis/apps")

    assert answer.json["kind"] == "APIGroup"
    assert answer.json["name"] == "apps"


async def test_unknown_group_version(api: Api) -> None:
    """A version that a group does not have answers 404."""
    assert (await api.get("/apis/apps/v7")).status == 404


async def test_schemas(api: Api, widget: Kind) -> None:
    """The schema of a custom resource can be had, with its fields, soon after it is served."""
    group = f"apis/{widget.group}/v1"
    index = await until(lambda: api.get("/openapi/v3"), lambda found: group in found.json["paths"])
    place = index.json["paths"][group]["serverRelativeURL"]
    path, _, query = place.partition("?")
    options = dict(pair.split("=", 1) for pair in query.split("&") if pair)
    schemas = (await api.get(path, **options)).json["components"]["schemas"]
    mine = next(schema for name, schema in schemas.items() if name.endswith(".Widget"))

    assert mine["properties"]["spec"]["properties"]["size"]["type"] == "integer"
    assert mine["x-kubernetes-group-version-kind"] == [
        {"group": widget.group, "version": "v1", "kind": "Widget"}
    ]


async def test_no_such_page(api: Api) -> None:
    """What is nothing answers 404."""
    assert (await api.get("/nothing/of/the/kind")).status == 404
