"""
source-controller: what GitRepository, OCIRepository, HelmRepository and HelmChart come to.

Imitates real-flux, sections 2 and 3: credentials are checked by the repository, a failure keeps
the old artifact, backs off up to 15 minutes and says `FetchFailed` beside Ready False. Ready turns
Unknown while it fetches. A HelmRepository of type oci is only an address and gets no status.
"""

import base64
from collections.abc import Iterable
from typing import Any

from fleetd.sim.controllers.base import Controller, Key, Obj, key_of, merge_conditions, stamp
from fleetd.sim.controllers.fluxparts import REQUESTED, SECRET, digest, seconds
from fleetd.sim.controllers.workloads_look import meant, members, part
from fleetd.sim.kube.cluster import GK, Change
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.sites import git

GROUP = "source.toolkit.fluxcd.io"
GIT: GK = (GROUP, "GitRepository")
OCI: GK = (GROUP, "OCIRepository")
HELM: GK = (GROUP, "HelmRepository")
CHART: GK = (GROUP, "HelmChart")
DEFINITIONS = tuple(
    Definition(group=GROUP, kind=kind, plural=plural, short_names=(short,))
    for kind, plural, short in (
        ("GitRepository", "gitrepositories", "gitrepo"),
        ("OCIRepository", "ocirepositories", "ocirepo"),
        ("HelmRepository", "helmrepositories", "helmrepo"),
        ("HelmChart", "helmcharts", "hc"),
    )
)
MISSING = "missing"
"""No repository has a chart of this name, and none has this version of a chart."""
BACK_OFF = (1.0, 900.0)
"""Seconds between attempts that fail: doubled from the first to the last."""


class Refused(Exception):
    """A fetch that failed: reason and message."""

    def __init__(self, reason: str, message: str, *, fetch: bool = True) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.fetch = fetch


class SourceController(Controller):
    name = "source-controller"
    watches = (GIT, OCI, HELM, CHART)

    def __init__(self, world: Any, cluster: Any) -> None:  # noqa: ANN401 - as the base has them
        super().__init__(world, cluster)
        self._fetching: set[Key] = set()
        self._failures: dict[Key, int] = {}

    def keys(self, change: Change) -> Iterable[Key]:
        if change.gk in self.watches and meant(change):
            yield key_of(change.gk, change.object)

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            self._fetching.discard(key)
            return None
        if obj["spec"].get("suspend") or (key.gk == HELM and obj["spec"].get("type") == "oci"):
            return None
        if key not in self._fetching:
            return self._begin(key, obj)
        self._fetching.discard(key)
        try:
            artifact = self._fetch(key, obj)
        except Refused as why:
            return self._failed(key, obj, why)
        return self._stored(key, obj, artifact)

    def _begin(self, key: Key, obj: Obj) -> float:
        self._fetching.add(key)
        generation = obj["metadata"]["generation"]
        if part(obj, "status").get("observedGeneration") != generation:
            said = "building artifact"
            self.status(
                key,
                {
                    "conditions": [
                        self.condition("Reconciling", "True", "Progressing", said),
                        self.condition("Ready", "Unknown", "Progressing", said),
                    ]
                },
            )
        return self.span(0.3, 1.5, key, "fetch")

    # What is fetched.

    def _fetch(self, key: Key, obj: Obj) -> dict[str, Any]:
        match key.gk[1]:
            case "GitRepository":
                return self._git(obj)
            case "HelmChart":
                return self._chart(obj)
            case _:
                url = str(obj["spec"]["url"])
                return self._artifact(f"sha256:{digest(url)}", url)

    def _git(self, obj: Obj) -> dict[str, Any]:
        url = str(obj["spec"]["url"])
        name, word = self._credentials(obj)
        clone = f"failed to checkout and determine revision: unable to clone '{url}': "
        site = git.find(self.world, url)
        if site is None:
            raise Refused("GitOperationFailed", f"{clone}repository not found: ")
        if site.down == "refused":
            raise Refused("GitOperationFailed", f"{clone}connect: connection refused")
        if site.down:
            raise Refused("GitOperationFailed", f"{clone}context deadline exceeded")
        if not site.opens(name, word):
            raise Refused("GitOperationFailed", f"{clone}authentication required: denied")
        ref = part(obj["spec"], "ref")
        if "commit" in ref:
            if site.at(str(ref["commit"])) is None:
                said = f"unable to resolve commit object for '{ref['commit']}': object not found"
                raise Refused("GitOperationFailed", clone + said)
            return self._artifact(f"sha1:{ref['commit']}", url)
        branch = str(ref.get("branch", "master"))
        if branch != site.branch:
            said = f'couldn\'t find remote ref "refs/heads/{branch}"'
            raise Refused("GitOperationFailed", clone + said)
        return self._artifact(site.revision, url)

    def _credentials(self, obj: Obj) -> tuple[str, str]:
        ref: Obj | None = obj["spec"].get("secretRef")
        if ref is None:
            return "", ""
        where = f"{obj['metadata']['namespace']}/{ref['name']}"
        secret = self.cluster.get(SECRET, ref["name"], obj["metadata"]["namespace"])
        if secret is None:
            said = f"failed to get secret '{where}'"
            missing = f'secrets "{ref["name"]}" not found'
            raise Refused("AuthenticationFailed", f"{said}: {said}: {missing}")
        data = part(secret, "data")
        return tuple(  # pyright: ignore[reportReturnType]
            base64.b64decode(data.get(name, "")).decode() for name in ("username", "password")
        )

    def _chart(self, obj: Obj) -> dict[str, Any]:
        spec = obj["spec"]
        source: Obj = spec["sourceRef"]
        found = self.cluster.get(
            (GROUP, source["kind"]), source["name"], obj["metadata"]["namespace"]
        )
        if found is None:
            kind = f"{source['kind'].lower()}s.{GROUP}"
            raise Refused("SourceUnavailable", f'{kind} "{source["name"]}" not found', fetch=False)
        if MISSING in (spec["chart"], spec.get("version")):
            raise Refused(
                "InvalidChartReference",
                "invalid chart reference: failed to get chart version for remote reference: "
                "no chart name found",
            )
        revision = version_of(str(spec.get("version", "*")))
        return self._artifact(revision, f"{spec['chart']}-{revision}.tgz")

    def _artifact(self, revision: str, what: str) -> dict[str, Any]:
        return {
            "revision": revision,
            "digest": f"sha256:{digest([revision, what])}",
            "lastUpdateTime": stamp(self.world),
            "path": f"artifacts/{digest(what)[:12]}.tar.gz",
            "size": 4096,
            "url": f"http://source-controller.flux-system.svc.cluster.local./{digest(what)[:12]}",
        }

    # What is said of it.

    def _stored(self, key: Key, obj: Obj, artifact: dict[str, Any]) -> float | None:
        self._failures.pop(key, None)
        old = part(part(obj, "status"), "artifact")
        if old.get("digest") == artifact["digest"]:
            artifact = dict(old)
        said = f"stored artifact for revision '{artifact['revision']}'"
        reason = "ChartPullSucceeded" if key.gk == CHART else "Succeeded"
        generation = obj["metadata"]["generation"]
        conditions = [
            self.condition("Ready", "True", reason, said, generation=generation),
            self.condition("ArtifactInStorage", "True", reason, said, generation=generation),
        ]
        self._say(key, conditions, {"artifact": artifact, "observedGeneration": generation})
        every = 3600.0 if key.gk == CHART else 600.0
        return seconds(obj["spec"].get("interval"), every)

    def _failed(self, key: Key, obj: Obj, why: Refused) -> float | None:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        generation = obj["metadata"]["generation"]
        conditions = [
            self.condition("Ready", "False", why.reason, why.message, generation=generation)
        ]
        if why.fetch:
            conditions.append(self.condition("FetchFailed", "True", why.reason, why.message))
        status: dict[str, Any] = {}
        stalled = why.reason == "InvalidChartReference"
        if stalled:
            conditions.append(self.condition("Stalled", "True", why.reason, why.message))
            status["observedGeneration"] = generation
        else:
            conditions.append(
                self.condition("Reconciling", "True", "ProgressingWithRetry", why.message)
            )
        self._say(key, conditions, status)
        self.event(obj, why.reason, why.message, warning=True)
        first, last = BACK_OFF
        return None if stalled else min(first * 2.0 ** min(count - 1, 12), last)

    def _say(self, key: Key, conditions: list[dict[str, Any]], status: dict[str, Any]) -> None:
        """Conditions that are not said any more end; an artifact stays."""
        old: dict[str, Any] = part(self.get(key), "status")
        kept = {"ArtifactInStorage"} | {one["type"] for one in conditions}
        before = [one for one in members(old, "conditions") if one["type"] in kept]
        asked = part(part(self.get(key), "metadata"), "annotations").get(REQUESTED)
        made = {**old, **status, "conditions": merge_conditions(before, conditions)}
        if asked:
            made["lastHandledReconcileAt"] = asked
        self.cluster.set_status(key.gk, key.name, key.namespace, made, manager=self.name)


def version_of(wanted: str) -> str:
    """The version that a repository gives for a range: the lowest that it allows, one patch up."""
    for one in wanted.replace(",", " ").split():
        number = one.lstrip("<>=^~v")
        if one[0] != "<" and number[:1].isdigit():
            pieces = (number.split("-")[0].replace("x", "0") + ".0.0").split(".")[:3]
            exact = one[0].isdigit() and number.count(".") == 2
            pieces[2] = pieces[2] if exact else str(int(pieces[2]) + 1)
            return ".".join(pieces)
    return "1.0.1"
