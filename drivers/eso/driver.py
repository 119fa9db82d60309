"""
The eso driver: the cluster's store, and the Ceph keys that go through it in both directions.

Health is read from the objects by the catalogue's rules; the cause of a failure, which the
objects do not tell, is added from Events. The store's server is not in the documents where fleetd
runs OpenBao: it is found by the Service of OpenBao when the store is written, and compared when
it is looked at.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from drivers.eso import causes, manifests
from fleetd import desired, objects
from fleetd.kube import errors
from fleetd.kube.facts import part as inside
from fleetd.objects import Manifest
from fleetd.vocabulary import Condition, Done, Observation, Outcome, Step, Truth, make_step
from topology.resource import Facts, Ref, Resource

STORE_KIND = "ClusterSecretStore"
TOUCH = "touch"
MANAGED = "managed"
BAO_NAMESPACE = "shared-services"
BAO_SERVICE = "openbao"
BAO_TLS = "openbao-tls"
DEADLINE = timedelta(seconds=30)
FETCHED = "reconcile.external-secrets.io/managed"
"""What External Secrets writes on a Secret that it fetched."""
_PULLS = ("ceph-pull", "ceph-pull-services")
_KINDS = ("secret-store", "ceph-push", *_PULLS)


class EsoDriver(objects.ObjectDriver):
    kind = "eso"

    def check(self, want: Resource) -> Sequence[str]:
        if want.ref.kind not in _KINDS:
            return [f"{want.ref.kind} is nothing that External Secrets has"]
        problems: list[str] = []
        if not want.spec.get("cluster") or not inside(want.spec, "install").get("name"):
            problems.append("the spec does not say on which cluster and under which name")
        if want.ref.kind in _PULLS and not want.spec.get("storage"):
            problems.append("the spec names no storage cluster to get keys of")
        if not manifests.interval(want).strip("0hms"):
            problems.append("a refreshInterval of zero makes External Secrets deaf; give e.g. 1h")
        return problems

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        match want.ref.kind:
            case "secret-store":
                bodies = {"write the store of OpenBao": manifests.store(want, self._mount(want))}
            case "ceph-push":
                bodies = {
                    f"push the Ceph key of {client} to OpenBao": manifests.push(want, client)
                    for client in manifests.CLIENTS
                }
            case "ceph-pull":
                name = str(want.spec["install"]["name"])
                bodies = {"fetch the Ceph key of nova": manifests.pull(want, name, "nova")}
            case _:
                prefix = str(want.spec["install"]["name"])
                bodies = {
                    f"fetch the Ceph key of {client}": manifests.pull(
                        want, f"{prefix}-{client}", client
                    )
                    for client in ("cinder", "glance")
                }
        made = [Manifest(backend=want.backend, body=body, why=why) for why, body in bodies.items()]
        spaces = sorted({one.namespace for one in made if one.namespace})
        return [*(desired.namespace(name, want.backend) for name in spaces), *made]

    def _own(self, want: Resource) -> Sequence[Manifest]:
        return [one for one in self.manifests(want) if not one.shared]

    def wanted(self, want: Resource) -> int:
        return len(self._own(want)) if inside(want.spec, "object").get("name") == "*" else 0

    # Looking.

    async def more(self, want: Resource, seen: dict[str, Any]) -> Facts:
        if want.ref.kind == "secret-store":
            return await self._more_of_store(want, seen)
        return {**await self._more_of_users(want, seen), **await self.prior(want)}

    async def prior(self, want: Resource) -> Facts:
        """Of what was retired, the Secrets that were fetched and are still there."""
        if not want.absent or want.ref.kind not in _PULLS:
            return {}
        left: dict[str, str] = {}
        for manifest in self._own(want):
            where = (manifest.name, manifest.namespace)
            live = await self.read(want, manifest.backend, ("", "Secret"), *where)
            if inside(live, "metadata", "labels").get(FETCHED) == "true":
                left[manifest.name] = str(inside(live, "metadata").get("uid") or "")
        return {"left": left} if left else {}

    async def _more_of_store(self, want: Resource, seen: Facts) -> dict[str, Any]:
        server, _ = await self._server(want)
        written = inside(seen, "spec", "provider", "vault").get("server")
        found: dict[str, Any] = {"moved": written != server}
        if "status" in seen and not causes.is_ready(seen):
            found["cause"] = await self._cause(want, STORE_KIND, self._store_name(want), "default")
            proven = self.tools.fleet.ready(Ref("openbao-auth", str(want.spec["cluster"])))
            if proven is not None and proven.truth is Truth.TRUE:
                found["recovered"] = proven.since.isoformat(timespec="seconds")
        return found

    async def _more_of_users(self, want: Resource, seen: Facts) -> dict[str, Any]:
        """`recovered` is since when the store is well, of each that is not well itself."""
        store = await self.read(want, want.backend, (manifests.GROUP, STORE_KIND), manifests.STORE)
        since = str(causes.ready(store).get("lastTransitionTime") or "")
        causes_of: dict[str, str] = {}
        recovered: dict[str, str] = {}
        for one in self._seen_objects(seen):
            if causes.is_ready(one) or not causes.ready(one):
                continue
            name = str(one["metadata"]["name"])
            kind, space = self._own(want)[0].kind, str(one["metadata"]["namespace"])
            causes_of[name] = await self._cause(want, kind, name, space)
            if causes.is_ready(store) and since and causes.touched(one) != since:
                recovered[name] = since
        return {"causes": causes_of, "recovered": recovered} if causes_of else {}

    def _seen_objects(self, seen: Facts) -> Sequence[Facts]:
        if "objects" in seen:
            return seen["objects"]
        return [seen] if "metadata" in seen else []

    async def _cause(self, want: Resource, kind: str, name: str, namespace: str) -> str:
        events = await self.tools.clusters.cache(want.backend, "", "Event", namespace)
        return causes.newest(events.items(namespace, mentioning=name), kind, name)

    # Deciding.

    def further(self, want: Resource, seen: Facts) -> Sequence[Step]:
        observed = inside(seen, "observed")
        if want.ref.kind == "secret-store":
            return self._further_of_store(want, seen, observed)
        kind = self._own(want)[0].kind
        return [
            self._touch(
                want,
                (kind, name, str(want.spec["install"]["namespace"])),
                mark,
                f"have {kind} {name} try again: the store is well since {mark}, and by itself it "
                "would wait up to seven minutes",
            )
            for name, mark in sorted(inside(observed, "recovered").items())
        ]

    def _further_of_store(self, want: Resource, seen: Facts, observed: Facts) -> Sequence[Step]:
        if observed.get("moved"):
            manifest = self._own(want)[0]
            body = objects.marked(manifest.body, want)
            args = {"backend": manifest.backend, "manifest": body, "force": manifest.force}
            why = "write the store again: OpenBao has another address now"
            return [make_step(want, objects.APPLY, args, why=why, deadline=DEADLINE)]
        mark = str(observed.get("recovered") or "")
        if not mark or causes.touched(seen) == mark:
            return ()
        why = (
            f"have the store try again: the login works since {mark}, and by itself it would wait "
            "up to seven minutes"
        )
        return [self._touch(want, (STORE_KIND, self._store_name(want), ""), mark, why)]

    def _touch(self, want: Resource, which: tuple[str, str, str], mark: str, why: str) -> Step:
        kind, name, namespace = which
        args = {
            "backend": want.backend,
            "kind": kind,
            "name": name,
            "namespace": namespace,
            "mark": mark,
        }
        return make_step(want, TOUCH, args, why=why, deadline=DEADLINE)

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        judged = super().judge(want, seen)
        observed = inside(seen.facts, "observed")
        said = observed.get("cause") or "; ".join(
            f"{name}: {cause}"
            for name, cause in sorted(inside(observed, "causes").items())
            if cause
        )
        if not said:
            return judged
        return [
            one if one.truth is Truth.TRUE else replace(one, message=f"{one.message}: {said}")
            for one in judged
        ]

    def _removal(self, want: Resource, seen: Facts) -> Sequence[Step]:
        """The Secrets belong to nobody, so they go with what fetched them; after it, for it would
        fetch them again."""
        steps = list(super()._removal(want, seen))
        fetched = {str(step.args["name"]): step for step in steps}
        for name, uid in inside(seen, "observed", "left").items():
            args = {
                "uid": uid,
                "backend": want.backend,
                "group": "",
                "kind": "Secret",
                "name": name,
                "namespace": str(want.spec["install"]["namespace"]),
            }
            steps.append(
                make_step(
                    want,
                    objects.DELETE,
                    args,
                    why=f"delete Secret {name}: nobody fetches it any more",
                    deadline=DEADLINE,
                    destroys=[want.ref],
                    after=[fetched[name].id] if name in fetched else (),
                )
            )
        return steps

    # Doing.

    async def _apply(self, step: Step) -> None:
        """A store gets its server here."""
        manifest: Facts = step.args["manifest"]
        if manifest["kind"] == STORE_KIND:
            server, authority = await self._server(self._want(step.ref))
            filled = manifests.reached(manifest, server, authority)
            await super()._apply(replace(step, args={**step.args, "manifest": filled}))
            return
        await super()._apply(step)

    async def act(self, step: Step) -> Outcome:
        if step.verb != TOUCH:
            return await super().act(step)
        args = step.args
        kube = self.tools.clusters.client(str(args["backend"]))
        kind = await kube.find(manifests.GROUP, str(args["kind"]))
        change = {"metadata": {"annotations": {causes.TOUCHED: args["mark"]}}}
        await kube.patch(kind, str(args["name"]), change, str(args["namespace"]))
        return Done()

    # Where OpenBao is.

    async def _server(self, want: Resource) -> tuple[str, str]:
        """Its address, and in base64 the authority of its certificate, if that is known."""
        told = self._secrets(want)
        if told["address"] != MANAGED:
            return str(told["address"]), ""
        backend = f"cluster:{self._management(want)}"
        service = await self.read(want, backend, ("", "Service"), BAO_SERVICE, BAO_NAMESPACE)
        url = _url(service)
        if not url:
            raise errors.Unreachable("the Service of OpenBao has no address yet")
        secret = await self.tools.clusters.secret(backend, BAO_TLS, BAO_NAMESPACE)
        authority = secret.values.get("ca.crt") if secret is not None else None
        # A certificate is public; it goes into the store's manifest.
        text = authority.reveal() if authority is not None else ""
        return url, base64.b64encode(text.encode()).decode()

    def _secrets(self, want: Resource) -> Facts:
        region = self.tools.fleet.everything().resources.get(Ref("region", want.region))
        if region is None:
            return {"address": MANAGED, "mount": "kv-v2"}
        return region.spec["secrets"]

    def _mount(self, want: Resource) -> str:
        return str(self._secrets(want)["mount"])

    def _management(self, want: Resource) -> str:
        topology = self.tools.fleet.everything()
        for ref in topology.regions.get(want.region, ()):
            found = topology.resources[ref]
            if ref.kind == "cluster" and found.spec.get("role") == "management":
                return ref.name
        return ""

    def _store_name(self, want: Resource) -> str:
        return str(want.spec["install"]["name"])

    def _want(self, ref: Ref) -> Resource:
        return self.tools.fleet.everything().resources[ref]


def _url(service: Mapping[str, Any] | None) -> str:
    """Where a Service of type LoadBalancer is reached; empty: nowhere yet."""
    ingress: Sequence[Facts] = inside(service, "status", "loadBalancer").get("ingress") or ()
    ports: Sequence[Facts] = inside(service, "spec").get("ports") or ()
    if not ingress or not ports:
        return ""
    told: Sequence[Facts] = ingress[0].get("ports") or ports
    host = ingress[0].get("hostname") or ingress[0].get("ip") or ""
    scheme = "http" if ports[0].get("name") == "http" else "https"
    return f"{scheme}://{host}:{told[0]['port']}" if host else ""
