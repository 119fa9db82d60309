"""
The region's Git repository, and those of others that a fleet uses: content by path, with a
history of commits.

It holds what an operator keeps in the folder of each cluster: the namespaces of the components,
and on a control plane the services that have no operator. Tests and scripts add commits: a bad
image, an emptied folder. One rule: a revision is a digest of content and history, so the same
commits give the same revisions everywhere.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fleetd.sim import charts
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.services import openstack
from fleetd.sim.world import Broken, HttpRequest, HttpResponse, World
from topology.resource import Resource, Topology

Manifest = dict[str, Any]
USER = "git"
PROGRAM = "app.kubernetes.io/name"
_SYSTEM = ("flux-system", "kube-system", "default")


@dataclass(frozen=True, slots=True)
class Commit:
    revision: str
    """40 hexadecimal digits."""
    message: str
    paths: Mapping[str, tuple[Manifest, ...]]


@dataclass
class GitSite:
    """One repository. It is a service of the world, under the name `git-<region>`."""

    url: str
    branch: str
    password: str
    """Empty: anybody may read."""
    commits: list[Commit] = field(default_factory=list[Commit])
    down: str = ""
    """`refused` or `hangs`: what whoever clones it meets."""

    @property
    def head(self) -> Commit:
        return self.commits[-1]

    @property
    def revision(self) -> str:
        return f"{self.branch}@sha1:{self.head.revision}"

    def commit(self, changes: Mapping[str, Sequence[Manifest]], message: str) -> Commit:
        """A new head in which these paths have this content, and the others what they had."""
        before = self.commits[-1] if self.commits else None
        paths = dict(before.paths) if before is not None else {}
        paths.update({path.strip("./"): tuple(content) for path, content in changes.items()})
        parent = before.revision if before is not None else ""
        text = msgspec.json.encode((parent, message, paths), order="deterministic")
        made = Commit(hashlib.sha1(text, usedforsecurity=False).hexdigest(), message, paths)
        self.commits.append(made)
        return made

    def remove(self, path: str, message: str) -> Commit:
        """The folder is not there any more; not the same as an empty one."""
        kept = {name: content for name, content in self.head.paths.items() if name != path}
        made = self.commit({}, message)
        self.commits[-1] = Commit(made.revision, message, kept)
        return self.commits[-1]

    def at(self, revision: str) -> Commit | None:
        wanted = revision.rpartition(":")[2]
        return next((one for one in self.commits if one.revision == wanted), None)

    def opens(self, username: str, password: str) -> bool:
        return not self.password or (bool(username) and password == self.password)

    def handle(self, request: HttpRequest) -> HttpResponse:
        """Enough of the protocol for a look at what is there."""
        if not self.opens(*_basic(request.headers.get("authorization", ""))):
            return HttpResponse(status=401, headers={"www-authenticate": 'Basic realm="git"'})
        if not request.path.endswith("/info/refs"):
            return HttpResponse(status=404)
        line = f"{self.head.revision} refs/heads/{self.branch}\n"
        return HttpResponse(status=200, body=line.encode())


def _basic(header: str) -> tuple[str, str]:
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        name, _, word = base64.b64decode(text).decode().partition(":")
    except ValueError:
        return "", ""
    return name, word


def find(world: World, url: str) -> GitSite | None:
    """By the address that Flux is told."""
    for service in world.services.values():
        if isinstance(service, GitSite) and service.url == url:
            return service
    return None


def of(world: World, region: str) -> GitSite:
    found = world.services.get(f"git-{region}")
    if not isinstance(found, GitSite):
        raise Broken(f"region {region} has no Git repository")
    return found


def furnish(world: World, topology: Topology) -> None:
    for resource in topology.resources.values():
        git: Mapping[str, Any] | None = resource.spec.get("git")
        if resource.ref.kind == "region" and git is not None:
            _region(world, topology, resource.ref.name, git)
        parameters: Mapping[str, Any] = resource.spec.get("parameters", {})
        url = str(parameters.get("url", ""))
        if resource.driver == "flux" and url and find(world, url) is None:
            _upstream(world, resource, url)


def _region(world: World, topology: Topology, region: str, git: Mapping[str, Any]) -> None:
    site = GitSite(
        url=git["url"],
        branch=git["branch"],
        password=world.token("git", region) if git.get("access") else "",
    )
    members = [one for one in topology.resources.values() if one.region == region]
    clusters = [one.ref.name for one in members if one.ref.kind == "cluster"]
    content = {f"{git['path']}/{name}": folder(members, name) for name in clusters}
    site.commit(content, "the clusters of this region")
    world.services[f"git-{region}"] = site


def folder(members: Iterable[Resource], cluster: str) -> list[Manifest]:
    """What lies in the folder of a cluster."""
    there = [one for one in members if one.spec.get("cluster") == cluster]
    spaces: dict[str, None] = {}
    for one in there:
        for part in ("install", "object"):
            inner: Mapping[str, Any] = one.spec.get(part, {})
            name = inner.get("namespace")
            mine = part == "install" or one.backend == f"cluster:{cluster}"
            if name and mine and name not in _SYSTEM:
                spaces[str(name)] = None
    # A cluster for which nothing is installed still has a folder that is not empty.
    made = [namespace(name) for name in sorted(spaces or {"fleet": None})]
    for one in there:
        if one.ref.kind in openstack.DEPLOYED:
            space = one.spec["install"]["namespace"]
            names = openstack.DEPLOYED[one.ref.kind]
            made += [deployment(name, space, program=one.ref.kind) for name in names]
    return made


def namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def deployment(name: str, space: str, image: str = "", program: str = "") -> Manifest:
    labels = {"app": name, PROGRAM: program or name}
    containers = [{"name": name, "image": image or f"registry.example/{name}:1.0"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": space, "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }


def _upstream(world: World, resource: Resource, url: str) -> None:
    """Somebody else's repository that brings an operator, such as K-ORC's."""
    parameters: Mapping[str, Any] = resource.spec["parameters"]
    install: Mapping[str, Any] = resource.spec["install"]
    name, space = install["name"], install["namespace"]
    chart = charts.find(name)
    content = [namespace(space)]
    if chart is not None:
        content += [definition(one) for one in chart.definitions]
    for one in (chart.deployments if chart is not None else ()) or (name,):
        content.append(deployment(one, space, program=name))
    site = GitSite(url=url, branch="main", password="")
    made = site.commit({str(parameters["path"]): content}, f"release of {name}")
    # A fleet pins the commit of others, so theirs is called as it is asked for.
    wanted = str(parameters.get("commit") or made.revision)
    site.commits[-1] = Commit(wanted, made.message, made.paths)
    world.services[f"git-{resource.ref.kind}"] = site


def definition(one: Definition) -> Manifest:
    """The CustomResourceDefinition that makes a server serve a kind."""
    versions: list[Manifest] = [
        {
            "name": version,
            "served": True,
            "storage": number == 0,
            "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            },
            **({"subresources": {"status": {}}} if one.status else {}),
        }
        for number, version in enumerate(one.versions)
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": one.resource},
        "spec": {
            "group": one.group,
            "names": {"kind": one.kind, "plural": one.plural, "listKind": f"{one.kind}List"},
            "scope": "Namespaced" if one.namespaced else "Cluster",
            "versions": versions,
        },
    }
