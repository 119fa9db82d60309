"""The definitions of all systems we drive, and all that we write to them, on a real API server."""

import asyncio
import copy
import dataclasses
import functools
import json
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Any

import pytest
import yaml

from tests.conformance.kube.api import CORE, CRDS, Api, established, until
from tests.contract import crds
from tests.real import lab, writes
from tests.real.reach import reached

pytestmark = pytest.mark.real

ESTABLISHED = 120.0
"""Seconds. The server establishes them one after the other."""
GARDEN = ("core.gardener.cloud", "security.gardener.cloud")
"""Served by another server."""
INCOMPLETE = {"objects.kubernetes.crossplane.io"}
"""Its package manager fills in where to convert it before it installs it."""
UNKNOWN = "/apis/garage.rajsingh.info/"
"""There is no CRD of Garage to hold it against."""


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with reached(lab.admin("crds")) as found:
        yield found


@pytest.fixture
async def garden() -> AsyncIterator[Api]:
    async with reached(lab.admin("garden")) as found:
        yield found


@lru_cache
def _definitions() -> dict[str, dict[str, Any]]:
    if not crds.CRDS.is_dir():
        pytest.skip("needs ../shared/crds, the CRDs of the systems we drive")
    # Ten times as fast where there is one in C, and there is much to read.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = [yaml.load(path.read_bytes(), Loader=loader) for path in crds.CRDS.glob("*/*.yaml")]
    # Through JSON: a date in YAML is text for the server.
    plain = [json.loads(json.dumps(one, default=str)) for one in found]
    return {one["metadata"]["name"]: one for one in plain}


_LOADED: list[dict[str, str]] = []


async def _load(api: Api) -> dict[str, str]:
    """Has all definitions served, once. Those that are refused, and why."""
    if _LOADED:
        return _LOADED[0]
    known = _definitions()
    answers = await asyncio.gather(*(api.post(CRDS, body) for body in known.values()))
    refused = {
        name: f"{answer.status} {answer.message}"
        for name, answer in zip(known, answers, strict=True)
        if answer.status not in (201, 409)
    }
    for name in known.keys() - refused.keys():
        path = f"{CRDS}/{name}"
        answer = await until(functools.partial(api.get, path), established, ESTABLISHED)
        if not established(answer):
            refused[name] = "is not served"
    _LOADED.append(refused)
    return refused


async def test_every_definition_is_taken(api: Api) -> None:
    """The real server takes and serves every CRD, with its CEL rules and defaults."""
    refused = await _load(api)

    assert {name: why for name, why in refused.items() if name not in INCOMPLETE} == {}
    assert refused.keys() == INCOMPLETE
    assert len(_definitions()) > 300


async def test_a_broken_rule_is_noticed(api: Api) -> None:
    """The server judges more than types: a CEL rule that cannot be read is refused."""
    body = copy.deepcopy(next(iter(_definitions().values())))
    for version in body["spec"]["versions"]:
        rules = [{"rule": "self.no.such(", "message": "x"}]
        version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] = rules
    answer = await api.post(CRDS, body, dryRun="All")

    assert answer.status == 422


async def test_an_unknown_field_is_noticed(api: Api) -> None:
    """The check can fail: a misspelt field of something that we write is refused."""
    await _load(api)
    found = await asyncio.to_thread(writes.story, "minimal")
    one = next(one for one in found.writes if "/helmreleases/" in one.request.path)
    await api.post(f"{CORE}/namespaces", {"metadata": {"name": one.namespace}})
    good = one.tried()
    body = json.loads(good.body)
    body["spec"]["intervall"] = "1h"
    bad = dataclasses.replace(good, body=json.dumps(body).encode())

    assert (await api.transport.send(good)).status == 201
    assert (await api.transport.send(bad)).status in (400, 500)


@pytest.mark.parametrize("example", ["minimal", "two-zones"])
async def test_everything_that_is_written_is_accepted(api: Api, example: str) -> None:
    """A whole bring-up, request by request, as a dry run: no unknown field, no broken rule."""
    await _load(api)
    found = await asyncio.to_thread(writes.story, example)
    tried = [one for one in found.writes if not any(name in one.request.path for name in GARDEN)]
    for namespace in sorted({one.namespace for one in tried if one.namespace}):
        await api.post(f"{CORE}/namespaces", {"metadata": {"name": namespace}})
    refused: dict[str, str] = {}
    for one in tried:
        if not one.alone:
            await api.transport.send(one.beforehand())
        answer = await api.transport.send(one.tried())
        # Whether the name is free is asked last, after all that is judged here.
        if answer.status not in (200, 201) and b'"AlreadyExists"' not in answer.body:
            refused[one.where] = f"{answer.status} {answer.body.decode()}"

    assert len(tried) > 100
    assert {where: why for where, why in refused.items() if UNKNOWN not in where} == {}
    assert all(why.startswith("404") for why in refused.values())


@pytest.mark.parametrize("example", ["minimal", "two-zones"])
async def test_a_garden_takes_what_is_written(garden: Api, example: str) -> None:
    """Project, credentials and binding are taken in the order of a bring-up, and every Shoot as a
    dry run, in a garden with the profiles of the simulated one."""
    found = await asyncio.to_thread(writes.story, example)
    refused: dict[str, str] = {}
    for profile in found.profiles:
        path = f"/apis/core.gardener.cloud/v1beta1/cloudprofiles/{profile['metadata']['name']}"
        answer = await garden.apply(path, profile, "site", force="true")
        if answer.status not in (200, 201):
            refused[path] = f"{answer.status} {answer.message}"
    tried = [one for one in found.writes if one.backend.startswith("garden-") and one.alone]
    for one in tried:
        shoot = "/shoots/" in one.request.path
        said = await garden.transport.send(one.tried() if shoot else one.request)
        if said.status not in (200, 201):
            refused[one.where] = f"{said.status} {said.body.decode()}"

    assert refused == {}
    assert sum("/shoots/" in one.request.path for one in tried) >= 4
