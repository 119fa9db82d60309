"""
The gardens that are judged: the simulated one, and a real gardener-apiserver behind its aggregator.

In neither does anybody act on what is written: no gardenlet, no scheduler. Every test has a plot of
its own, with a project, a profile and credentials, so that none sees another's.
"""

import copy
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from drivers.gardener import manifests
from fleetd.kube.transport import Transport
from fleetd.sim.controllers.gardenadmission import Admission
from fleetd.sim.faces.inprocess import InProcess
from fleetd.sim.kube.cluster import Cluster
from tests.conformance.kube.api import CORE, Answer, Api, Obj, eventually
from tests.conformance.kube.places import Hurried, uid_of
from tests.drivers.gardener.region import want
from tests.real import garden, lab
from tests.real.reach import reached

GARDEN = "/apis/core.gardener.cloud/v1beta1"
SECURITY = "/apis/security.gardener.cloud/v1alpha1"
PROVIDER = "ironcore-metal"
VERSIONS = ("1.32.6", "1.33.3", "1.33.4", "1.33.5", "1.34.2", "1.35.1")
NAME = "cp-a"


@asynccontextmanager
async def simulated() -> AsyncGenerator[Transport]:
    cluster = Cluster("judged", Hurried(), uid_of=uid_of, rbac_enforced=True)
    Admission(cluster).install()
    registered = _body("ControllerRegistration", "lab", garden.extensions())
    cluster.create(registered, manager="lab")
    yield InProcess(cluster, token=cluster.admin_token(), backend="judged")
    cluster.end_watches()


@asynccontextmanager
async def real() -> AsyncGenerator[Transport]:
    async with reached(lab.admin("garden")) as api:
        yield api.transport


PLACES: dict[str, Callable[[], AbstractAsyncContextManager[Transport]]] = {
    "simulated": simulated,
    "real": real,
}


@dataclass(frozen=True, slots=True)
class Plot:
    api: Api
    project: str

    @property
    def space(self) -> str:
        return f"garden-{self.project}"

    @property
    def profile(self) -> str:
        return f"{GARDEN}/cloudprofiles/{self.project}"

    def shoot(self, name: str = NAME, part: str = "") -> str:
        path = f"{GARDEN}/namespaces/{self.space}/shoots"
        return "/".join(filter(None, (path, name, part)))

    async def lay(self) -> None:
        """All that a Shoot needs, until admission has seen it: it reads caches that lag behind."""
        await self.make_space()
        await self.make_project()
        await self.make_profile()
        await self.make_binding()
        created(await eventually(lambda: self.plant(dryRun="All"), 201))

    async def make_space(self) -> None:
        created(await self.api.post(f"{CORE}/namespaces", {"metadata": {"name": self.space}}))

    async def make_project(self) -> None:
        body = _body("Project", self.project, {"namespace": self.space})
        created(await self.api.post(f"{GARDEN}/projects", body))

    async def make_profile(self) -> None:
        body = _body("CloudProfile", self.project, _offers())
        created(await self.api.post(f"{GARDEN}/cloudprofiles", body))

    async def make_seed(self) -> None:
        credentials = {"apiVersion": "v1", "kind": "Secret", "name": "dns", "namespace": "garden"}
        dns = {"type": "designate", "credentialsRef": credentials}
        spec = {
            "provider": {"type": PROVIDER, "region": "eu-1"},
            "networks": {"pods": "10.96.0.0/11", "services": "10.128.0.0/12"},
            "ingress": {"domain": f"{self.project}.example", "controller": {"kind": "nginx"}},
            "dns": {"provider": dns, "internal": {**dns, "domain": "internal.example"}},
        }
        created(await self.api.post(f"{GARDEN}/seeds", _body("Seed", self.project, spec)))

    async def make_binding(self) -> None:
        metadata = {"name": "metal", "namespace": self.space}
        secret = {"metadata": metadata, "stringData": {"token": "t"}}
        created(await self.api.post(f"{CORE}/namespaces/{self.space}/secrets", secret))
        body = {
            "apiVersion": "security.gardener.cloud/v1alpha1",
            "kind": "CredentialsBinding",
            "metadata": metadata,
            "provider": {"type": PROVIDER},
            "credentialsRef": {"apiVersion": "v1", "kind": "Secret", **metadata},
        }
        path = f"{SECURITY}/namespaces/{self.space}/credentialsbindings"
        created(await self.api.post(path, body))

    def body(self, name: str = NAME) -> Obj:
        """What our driver writes for hypervisors, with a second pool that is updated in place."""
        made: Obj = copy.deepcopy(dict(manifests.shoot(want("cluster", "hv")).body))
        made["apiVersion"] = "core.gardener.cloud/v1beta1"
        made["metadata"] = {"name": name, "namespace": self.space}
        made["spec"]["cloudProfile"]["name"] = self.project
        hv = copy.deepcopy(made["spec"]["provider"]["workers"][0])
        hv |= {"name": "hv", "updateStrategy": "ManualInPlaceUpdate"}
        del hv["maxSurge"], hv["maxUnavailable"]
        made["spec"]["provider"]["workers"][0]["name"] = "system"
        made["spec"]["provider"]["workers"].append(hv)
        return made

    async def plant(self, body: Obj | None = None, **query: str) -> Answer:
        return await self.api.post(self.shoot(""), body or self.body(), **query)


def created(answer: Answer) -> None:
    assert answer.status == 201, answer.message


def _body(kind: str, name: str, spec: Obj) -> Obj:
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def _image(version: str, least: str = "1.0.0", **more: str) -> Obj:
    return {
        "version": version,
        "architectures": ["amd64"],
        "cri": [{"name": "containerd"}],
        "inPlaceUpdates": {"supported": True, "minVersionForUpdate": least},
        **more,
    }


def _offers() -> Obj:
    images = [
        _image("1443.3.0", expirationDate="2020-01-01T00:00:00Z"),
        *(_image(f"1877.{one}.0") for one in (3, 4, 5)),
        _image("2000.1.0", least="1900.0.0"),
    ]
    size = {"cpu": "64", "gpu": "0", "memory": "512Gi", "architecture": "amd64"}
    return {
        "type": PROVIDER,
        "kubernetes": {"versions": [{"version": one} for one in VERSIONS]},
        "machineImages": [{"name": "gardenlinux", "versions": images}],
        "machineTypes": [
            {"name": "std-64c", **size},
            {"name": "old-64c", "usable": False, **size},
        ],
        "regions": [{"name": "eu-1", "zones": [{"name": "a"}]}],
    }
