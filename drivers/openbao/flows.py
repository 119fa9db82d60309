"""
A credential on its way: made or found at its source, laid down at a path, brought to its targets.

First version. What fleetd makes (random values, kubeconfigs) it writes itself; what lies in a
Secret of a cluster is pushed by External Secrets there; what somebody writes into OpenBao is
copied if it lies elsewhere. Targets read it with an ExternalSecret. A target has the newest
version when the data hash that External Secrets left on its Secret is that of the newest value:
Ready and a moved version of the object prove less. Who made which version stands in the path's
custom metadata, under names that begin with `fleetd-`.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from drivers.openbao import client, fleet, manifests, values
from drivers.openbao.client import Bao
from drivers.openbao.parts import DEADLINE, Part
from drivers.openbao.shape import inside
from fleetd.kube import facts
from fleetd.kube.objects import Manifest
from fleetd.secrets import Secret, SecretError
from fleetd.vocabulary import Done, Failed, Outcome, Step, make_step
from topology.documents.base import parse_duration
from topology.resource import Facts, Resource

MAKE = "make-version"
COPY = "copy-version"
POKE = "poke"
VALUE = "value"
DATA_HASH = "reconcile.external-secrets.io/data-hash"
FORCE = "external-secrets.io/force-sync"
ROOK = "rook-ceph"
SOURCES = ("generate", "kubeconfig", "cephClient", "secret", "openbao")


class Flows(Part):
    def check(self, want: Resource) -> Sequence[str]:
        source: Facts = want.spec.get("source") or {}
        given = [kind for kind in SOURCES if source.get(kind)]
        problems: list[str] = []
        if len(given) != 1:
            problems.append("a flow has exactly one source")
        if not want.spec.get("path") or not want.spec.get("targets"):
            problems.append("a flow has a path and at least one target")
        return problems

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        path, made = str(want.spec["path"]), list[Manifest]()
        pushed = _pushed(want.spec["source"])
        if pushed is not None:
            cluster, source = pushed
            body = manifests.pushed(want.ref.name, source, path)
            why = f"let External Secrets on {cluster} push it to OpenBao"
            made.append(Manifest(backend=f"cluster:{cluster}", body=body, why=why))
        for target in want.spec["targets"]:
            body = manifests.pulled(want.ref.name, target, path)
            why = f"let External Secrets on {target['cluster']} fetch it"
            cluster = str(target["cluster"])
            made.append(Manifest(backend=f"cluster:{cluster}", body=body, why=why, place=cluster))
        return made

    # Looking.

    async def look(self, want: Resource, seen: dict[str, Any]) -> dict[str, Any]:
        mount, path = self.mount(want), str(want.spec["path"])
        copied = _copied_from(want)

        def read(bao: Bao) -> tuple[Facts | None, Facts | None, int]:
            known = bao.metadata(mount, path)
            newest = bao.secret(mount, path) if known is not None else None
            origin = bao.metadata(mount, copied) if copied else None
            return known, newest, int((origin or {}).get("current_version") or 0)

        try:
            known, newest, origin = await self.ask(want, read)
        except client.Denied:
            return {"parts": seen.get("parts", {}), "source": "denied"}
        version = int((known or {}).get("current_version") or 0)
        if not seen and not version:
            return {}
        custom: Mapping[str, str] = (known or {}).get("custom_metadata") or {}
        old = await self._targets(want, newest)
        return {
            "parts": seen.get("parts", {}),
            "version": version,
            "source": self._source(want, version, origin),
            "copied": custom.get("fleetd-copied") == str(origin) if copied else True,
            "targets": {"old": len(old), "names": old},
            "rotation": self._rotation(want, known),
        }

    def _source(self, want: Resource, version: int, origin: int) -> str:
        """Whether there is anything to carry."""
        if _copied_from(want):
            return "present" if origin else "missing"
        return "present" if version else "missing"

    async def _targets(self, want: Resource, newest: Facts | None) -> list[str]:
        """Those without the newest value."""
        old: list[str] = []
        value: Mapping[str, Any] = (newest or {}).get("data") or {}
        for target in want.spec["targets"]:
            space, name = str(target["namespace"]), str(target["secret"])
            noted = await self._noted_hash(f"cluster:{target['cluster']}", space, name)
            wanted = _hash(str(target["key"]), str(value[VALUE])) if VALUE in value else ""
            if not wanted or noted != wanted:
                old.append(f"{target['cluster']}/{space}/{name}")
        return old

    async def _noted_hash(self, backend: str, namespace: str, name: str) -> str:
        """What External Secrets says the Secret holds; its data is not looked at."""
        kube = self.tools.clusters.client(backend)
        found = await kube.get(await kube.find("", "Secret"), name, namespace)
        return str(inside(found, "metadata", "annotations").get(DATA_HASH) or "")

    def _rotation(self, want: Resource, known: Facts | None) -> str:
        rule: Facts | None = want.spec.get("rotation")
        if not rule or known is None or not known.get("current_version"):
            return "none"
        newest: Facts = known["versions"][str(known["current_version"])]
        age = self.tools.clock.now() - datetime.fromisoformat(str(newest["created_time"]))
        every, overlap = _duration(rule["every"]), _duration(rule["overlap"])
        if age < every:
            return "fresh"
        return "due" if age < every + overlap else "overdue"

    # Doing.

    def propose(self, want: Resource, seen: Facts) -> Sequence[Step]:
        if seen.get("source") == "denied":
            return ()
        steps: list[Step] = []
        first = self._first(want, seen)
        if first is not None:
            steps.append(first)
        elif seen:
            steps += self._pokes(want, seen)
        return steps

    def _first(self, want: Resource, seen: Facts) -> Step | None:
        source: Facts = want.spec["source"]
        version = int(seen.get("version") or 0)
        if _copied_from(want):
            if not seen or seen["copied"] or seen["source"] == "missing":
                return None
            why = "carry the newest value on from where it is written"
            return make_step(want, COPY, {"cas": version}, why=why, deadline=DEADLINE)
        made = source.get("generate") or source.get("kubeconfig")
        due = seen.get("rotation") in ("due", "overdue") if seen else False
        if not made or (version and not due):
            return None
        why = "make the next version: the present one is old" if version else "make the value"
        return make_step(want, MAKE, {"cas": version}, why=why, deadline=DEADLINE)

    def _pokes(self, want: Resource, seen: Facts) -> list[Step]:
        """External Secrets looks once an hour; a changed annotation makes it look now."""
        if not seen["version"]:
            return []
        steps: list[Step] = []
        for target in want.spec["targets"]:
            name = f"{target['cluster']}/{target['namespace']}/{target['secret']}"
            part = f"ExternalSecret {target['namespace']}/{target['secret']} on {target['cluster']}"
            if name not in seen["targets"]["names"] or part not in seen["parts"]:
                continue
            args = {
                "backend": f"cluster:{target['cluster']}",
                "namespace": target["namespace"],
                "name": target["secret"],
                "mark": str(seen["version"]),
            }
            why = f"have {name} fetch version {seen['version']} now"
            steps.append(make_step(want, POKE, args, why=why, deadline=DEADLINE))
        return steps

    async def act(self, want: Resource, step: Step) -> Outcome:
        match step.verb:
            case "make-version":
                return await self._make(want, int(step.args["cas"]))
            case "copy-version":
                return await self._copy(want, int(step.args["cas"]))
            case "poke":
                return await self._poke(step.args)
            case _:
                return await super().act(want, step)

    async def _make(self, want: Resource, cas: int) -> Outcome:
        mount, path, source = self.mount(want), str(want.spec["path"]), want.spec["source"]
        minted = await self._minted(want) if source.get("kubeconfig") else None
        custom = self._custom(want, cas + 1)

        def write(bao: Bao) -> None:
            known = bao.metadata(mount, path)
            if int((known or {}).get("current_version") or 0) != cas:
                return  # this version is there already
            bao.stamp(mount, path, custom)
            value = minted.reveal() if minted else _generated(source["generate"], bao)
            bao.put(mount, path, {VALUE: value}, cas=cas)

        await self.ask(want, write)
        return Done()

    async def _copy(self, want: Resource, cas: int) -> Outcome:
        mount, path, origin = self.mount(want), str(want.spec["path"]), _copied_from(want)

        def copy(bao: Bao) -> bool:
            found = bao.secret(mount, origin)
            if found is None:
                return False
            copied = {"fleetd-copied": str(found["metadata"]["version"])}
            if bao.put(mount, path, found["data"], cas=cas):
                bao.stamp(mount, path, {**self._custom(want, cas + 1), **copied})
            return True

        if not await self.ask(want, copy):
            return Failed("SourceMissing", f"there is nothing at {mount}/{origin} yet", retry=True)
        return Done()

    async def _minted(self, want: Resource) -> Secret:
        """An admin kubeconfig, as Gardener mints it."""
        asked: Facts = want.spec["source"]["kubeconfig"]
        kube = self.tools.clusters.client(f"garden:{want.region}")
        shoots = await kube.find("core.gardener.cloud", "Shoot")
        region = fleet.region(self.topology(), want.region)
        project = region.spec["garden"]["project"] if region is not None else ""
        seconds = int(_duration(asked["validity"]).total_seconds())
        answer = await kube.post(
            shoots.path(str(asked["cluster"]), f"garden-{project}", "adminkubeconfig"),
            {
                "apiVersion": "authentication.gardener.cloud/v1alpha1",
                "kind": "AdminKubeconfigRequest",
                "spec": {"expirationSeconds": seconds},
            },
        )
        try:
            return Secret(base64.b64decode(answer["status"]["kubeconfig"]).decode())
        except (KeyError, ValueError):
            pass
        raise SecretError(f"the garden did not mint a kubeconfig of {asked['cluster']}")

    async def _poke(self, args: Facts) -> Outcome:
        kube = self.tools.clusters.client(str(args["backend"]))
        kind = await kube.find("external-secrets.io", "ExternalSecret")
        change = {"metadata": {"annotations": {FORCE: args["mark"]}}}
        await kube.patch(kind, str(args["name"]), change, str(args["namespace"]))
        return Done()

    def _custom(self, want: Resource, version: int) -> dict[str, str]:
        return {
            "fleetd-flow": want.ref.name,
            "fleetd-version": str(version),
            "fleetd-generation": facts.digest({"generation": want.generation}),
        }


def _generated(asked: Facts, bao: Bao) -> str:
    return values.make(f"{asked['alphabet']}:{asked['length']}", bao.random)


def _pushed(source: Facts) -> tuple[str, Mapping[str, Any]] | None:
    """The Secret that External Secrets of a cluster pushes, if the source is one."""
    if source.get("secret"):
        return str(source["secret"]["cluster"]), source["secret"]
    if source.get("cephClient"):
        client_name = str(source["cephClient"]["client"])
        secret = {"namespace": ROOK, "name": f"rook-ceph-client-{client_name}", "key": client_name}
        return str(source["cephClient"]["cluster"]), secret
    return None


def _copied_from(want: Resource) -> str:
    """Another path of OpenBao from which the value is carried on; empty if it is not."""
    given: Facts | None = want.spec["source"].get("openbao")
    origin = str(given["path"]) if given else ""
    return origin if origin != want.spec["path"] else ""


def _hash(key: str, value: str) -> str:
    """As External Secrets notes it: the digest of how Go prints a map of bytes."""
    printed = f"map[{key}:[{' '.join(str(byte) for byte in value.encode())}]]"
    return hashlib.sha3_224(printed.encode()).hexdigest()


def _duration(given: Any) -> timedelta:  # noqa: ANN401 - text in a spec
    if isinstance(given, timedelta):
        return given
    return parse_duration(str(given)) or timedelta(0)
