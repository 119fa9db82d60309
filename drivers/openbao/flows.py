"""
A credential on its way: made or found at its source, laid down at a path, brought to its targets.

First version. What fleetd makes (random values, kubeconfigs) it writes itself; what lies in a
Secret of a cluster is pushed by External Secrets there; what somebody writes into OpenBao is
copied if it lies elsewhere. Targets read it with an ExternalSecret. Who made which version stands
in the path's custom metadata, under names that begin with `fleetd-`.

A rotation is three things that follow from what is seen: a new version when it is due, targets
that fetch it, and the end of the old version when every target was seen with the new one. While
one was not, neither is the old one destroyed nor a third one made.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from drivers.openbao import client, consumers, fleet, manifests, rotation, values
from drivers.openbao.client import Bao, Kept
from drivers.openbao.consumers import VALUE, Use
from drivers.openbao.parts import DEADLINE, Part
from fleetd import desired
from fleetd.kube import facts
from fleetd.kube.facts import part as inside
from fleetd.objects import Manifest
from fleetd.secrets import Secret, SecretError
from fleetd.vocabulary import Done, Failed, Outcome, Step, make_step
from topology.resource import Facts, Resource

MAKE = "make-version"
COPY = "copy-version"
POKE = "poke"
RETIRE = "retire-versions"
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
            where = desired.namespace(str(target["namespace"]), f"cluster:{cluster}", cluster)
            made += [where] if where not in made else []
            made.append(Manifest(backend=f"cluster:{cluster}", body=body, why=why, place=cluster))
        return made

    # Looking.

    async def look(self, want: Resource, seen: dict[str, Any]) -> dict[str, Any]:
        mount, path = self.mount(want), str(want.spec["path"])
        copied = _copied_from(want)

        def read(bao: Bao) -> tuple[Facts | None, dict[int, Kept], int]:
            known = bao.metadata(mount, path)
            lying = [bao.secret(mount, path, number) for number in rotation.lying(known)]
            values = {kept.version: kept for kept in lying if kept is not None}
            origin = bao.metadata(mount, copied) if copied else None
            return known, values, rotation.newest(origin)

        try:
            known, values, origin = await self.ask(want, read)
        except client.Denied:
            return {"parts": seen.get("parts", {}), "source": "denied"}
        version = rotation.newest(known)
        if not seen and not version:
            return {}
        custom = inside(known, "custom_metadata")
        uses = await consumers.seen(self.tools, want, values)
        late = {use.who: words for use in uses if (words := _late(use, version))}
        now, rule = self.tools.clock.now(), want.spec.get("rotation")
        unseen = [use.unseen for use in uses if use.unseen]
        ours = bool(want.spec["source"].get("generate")) and not late and not unseen
        return {
            "parts": seen.get("parts", {}),
            "version": version,
            "source": self._source(want, version, origin),
            "copied": custom.get("fleetd-copied") == str(origin) if copied else True,
            "targets": {
                "old": len(late),
                "names": [use.who for use in uses if use.held != version],
                "said": "; ".join(late.values()),
                "unseen": unseen,
            },
            "rotation": rotation.state(rule, known, now),
            "retire": list(rotation.retirable(rule, known, now)) if ours else [],
            "observed": {"credentials": {want.ref.name: self._told(want, known, uses, list(late))}},
        }

    def _source(self, want: Resource, version: int, origin: int) -> str:
        """Whether there is anything to carry."""
        if _copied_from(want):
            return "present" if origin else "missing"
        return "present" if version else "missing"

    def _told(
        self, want: Resource, known: Facts | None, uses: Sequence[Use], late: list[str]
    ) -> dict[str, Any]:
        """For the ledger: what anybody may know of it."""
        version = rotation.newest(known)
        if known is None or not version:
            return {}
        born, rule = rotation.made(known, version), want.spec.get("rotation")
        due = rotation.due_at(rule, known)
        minted: Facts | None = want.spec["source"].get("kubeconfig")
        ends = born + rotation.duration(minted["validity"]) if minted else None
        told = {
            "version": version,
            "madeAt": born.isoformat(),
            "next": due.isoformat() if due else None,
            "expires": ends.isoformat() if ends else None,
            "seen": {use.who: use.held for use in uses if use.held and not use.waits},
            "stillOld": late,
            "older": [number for number in rotation.lying(known) if number < version],
        }
        return {key: value for key, value in told.items() if value is not None}

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
            steps += self._retirement(want, seen)
        return steps

    def _first(self, want: Resource, seen: Facts) -> Step | None:
        source: Facts = want.spec["source"]
        version = int(seen.get("version") or 0)
        if _copied_from(want):
            if not seen or seen["copied"] or seen["source"] == "missing":
                return None
            why = "carry the newest value on from where it is written"
            return make_step(want, COPY, {"cas": version}, why=why, deadline=DEADLINE, writes=2)
        made = source.get("generate") or source.get("kubeconfig")
        due = seen.get("rotation") in (rotation.DUE, rotation.OVERDUE) if seen else False
        # With somebody still on the one before, a third would be good at the same time.
        if not made or (version and (not due or seen["targets"]["old"])):
            return None
        why = f"make version {version + 1}: its rotation is due" if version else "make the value"
        return make_step(want, MAKE, {"cas": version}, why=why, deadline=DEADLINE, writes=2)

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

    def _retirement(self, want: Resource, seen: Facts) -> list[Step]:
        """Cannot be had back, so it needs approval."""
        old: Sequence[int] = seen["retire"]
        if not old:
            return []
        numbers = ", ".join(map(str, old))
        count, newest = len(want.spec["targets"]), seen["version"]
        everybody = "all its targets were" if count > 1 else "its target was"
        why = (
            f"destroy version {numbers} at {want.spec['path']} in OpenBao: {everybody} seen "
            f"with version {newest}"
        )
        args = {"versions": list(old), "newest": newest}
        return [make_step(want, RETIRE, args, why=why, deadline=DEADLINE, destroys=[want.ref])]

    async def act(self, want: Resource, step: Step) -> Outcome:
        match step.verb:
            case "retire-versions":
                return await self._retire(want, step.args)
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
            value = minted or _generated(source["generate"], bao)
            bao.put(mount, path, {VALUE: value}, cas=cas)

        await self.ask(want, write)
        return Done()

    async def _retire(self, want: Resource, args: Facts) -> Outcome:
        """Between the look and the approval days may have passed, so it is looked once more."""
        mount, path, kept = self.mount(want), str(want.spec["path"]), int(args["newest"])
        newest = await self.ask(want, lambda bao: bao.secret(mount, path, kept))
        held = {kept: newest} if newest else {}
        uses = await consumers.seen(self.tools, want, held)
        late = [words for use in uses if (words := _late(use, kept) or use.unseen)]
        if late:
            return Failed("StillInUse", "; ".join(late), retry=True)
        await self.ask(want, lambda bao: bao.destroy(mount, path, args["versions"]))
        return Done()

    async def _copy(self, want: Resource, cas: int) -> Outcome:
        mount, path, origin = self.mount(want), str(want.spec["path"]), _copied_from(want)

        def copy(bao: Bao) -> bool:
            found = bao.secret(mount, origin)
            if found is None:
                return False
            copied = {"fleetd-copied": str(found.version)}
            if bao.put(mount, path, found.values, cas=cas):
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
        seconds = int(rotation.duration(asked["validity"]).total_seconds())
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


def _generated(asked: Facts, bao: Bao) -> Secret:
    return Secret(values.make(f"{asked['alphabet']}:{asked['length']}", bao.random))


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


def _late(use: Use, newest: int) -> str:
    """Why it does not count as a user of the newest version; empty if it does."""
    if not newest or use.held != newest:
        return f"{use.who} holds {f'version {use.held}' if use.held else 'no known version'}"
    return f"{use.who}: {use.waits}" if use.waits else ""
