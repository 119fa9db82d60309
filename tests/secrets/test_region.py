"""No secret of a region comes out of its daemon, whatever fails; and what would come is seen."""

import asyncio
import gzip
import json
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from fleetd import secrets
from fleetd.daemon.window import Window
from fleetd.store.base import Recorded
from fleetd.surface import http
from fleetd.surface.panel import Figures
from fleetd.vocabulary import Condition
from tests.secrets import canary, region
from tests.secrets.region import Life
from topology.resource import Ref

KNOWN = (
    *("password of the BMCs", "mgmt eu-1-git password", "garden-eu-1 metal token"),
    *("mgmt cp-kubeconfig value", "mgmt hv-kubeconfig value", "mgmt st-kubeconfig value"),
    *("mgmt st greenhousekubeconfig", "token 0 of cluster garden-eu-1"),
    *("mgmt openbao-init-keys init-output", "unseal key 0", "OpenBao token 0"),
    *("kv-v2/billing/exporter value 1", "kv-v2/infrastructure/mariadb-cp root-password 1"),
    "kv-v2/bootstrap/openstack-cp/prod-keystone/admin password 1",
    "kv-v2/bootstrap/openstack-cp/garage/s3-credentials secret-access-key 1",
    "kv-v2/bootstrap/openstack-cp/openbao-instance/unseal-key key 1",
    *("cp prod-nova-account password", "cp rabbitmq-default-user password"),
    *("st rook-ceph-client-prod-nova userKey", "st rook-ceph-mon ceph-secret"),
    *("admin token", "scrape token", "client secret", "session"),
)
"""Those that must be among the secrets: one of each sort."""
PLANTED = "planted-Tr0ub4dor-and-7"
SINKS = ("HTTP", "metrics", "page", "watch", "CLI", "store", "audit", "log", "tracebacks")


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Generator[Life]:
    secrets.REGISTRY.forget()
    yield region.lived(tmp_path_factory.mktemp("region"))
    secrets.REGISTRY.forget()


def test_nothing_comes_out_of_a_region_in_trouble(life: Life) -> None:
    """Every secret of the world, in every encoding, is looked for in every sink, after faults of
    every kind of request by far sides that quote what they were sent."""
    shown = asyncio.run(region.shown(life))
    values = region.named(life.values)
    leaks = {sink: canary.search(text, values) for sink, text in shown.items()}

    assert leaks == {sink: [] for sink in SINKS}
    assert set(KNOWN) <= set(life.values)
    assert len(KNOWN) == 24
    assert len(life.climate.hits) >= 10
    # Both walls were needed: something was hidden, and errors were told whole.
    assert secrets.HIDDEN.encode() in shown["log"]
    assert secrets.HIDDEN.encode() in shown["tracebacks"]
    assert secrets.HIDDEN.encode() in shown["audit"]
    assert b"Sealed" in shown["HTTP"]


class Leaky(Window):
    """Shows what it should not."""

    def ready(self, ref: Ref) -> Condition | None:
        found = super().ready(ref)
        return replace(found, message=PLANTED) if found is not None else None

    def figures(self, region: str) -> Figures:
        return replace(super().figures(region), clusters={PLANTED: True})

    async def events(self, **asked: Any) -> list[Recorded]:
        return [
            replace(one, event=replace(one.event, message=PLANTED))
            for one in await super().events(**asked)
        ]


def test_a_leak_of_a_region_is_seen_in_every_sink(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test of the test: a value that the filters do not know, planted where each sink gets
    its words from."""
    files = http.page.load()
    index = files[http.page.INDEX]
    leaky = index._replace(plain=PLANTED.encode(), packed=gzip.compress(PLANTED.encode()))
    monkeypatch.setattr(http.page, "load", lambda: {**files, http.page.INDEX: leaky})
    (life.folder / "state" / "planted").write_text(json.dumps(PLANTED))

    shown = asyncio.run(region.shown(life, Leaky, said=PLANTED))
    seen = {sink: canary.search(text, {"planted": PLANTED}) for sink, text in shown.items()}

    assert [sink for sink, leaks in seen.items() if not leaks] == []
    assert set(seen) == set(SINKS)
