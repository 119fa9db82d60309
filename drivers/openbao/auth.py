"""
How a cluster logs in to OpenBao: its mount, the mount's configuration, and its roles.

Three traps are guarded here. A role without an audience takes a token of any audience: every role
has one, and one that lacks it is a failure. The mount's authority is not looked at again while a
connection lives: so it is compared with that of the cluster by content, and not only tried. And
every plain refusal looks alike: so a login is proven with an account of our own, over a fresh
connection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from drivers.openbao import client, fleet, grants, manifests
from drivers.openbao.client import Bao
from drivers.openbao.parts import DEADLINE, Part
from fleetd.kube import config, errors, tokens
from fleetd.kube.facts import part as inside
from fleetd.objects import Manifest
from fleetd.secrets import Secret
from fleetd.vocabulary import Done, Outcome, Step, make_step
from topology.resource import Facts, Resource

MOUNT = "mount-auth"
CONFIGURE = "configure-auth"
ROLE = "write-role"
UNMOUNT = "unmount-auth"
AUDIENCE = "openbao"
OPERATOR = "external-secrets"
TENANT = "eso-tenant"
PROOF_ROLE = "fleetd-proof"
REVIEWER_TTL = timedelta(days=60)
RENEW_BEFORE = timedelta(days=30)
PROOF_TTL = 600
"""Seconds; the shortest that an API server grants."""
ASKED = 2
"""Times in a row that a login must be refused: one refusal may come of OpenBao or of the cluster
being busy, and to configure the mount anew for it would help nobody."""
OWN_CA = "kube-root-ca.crt"
_UNTIL = "token reviewer until "
_NEW = "made by fleetd"
"""Description of a mount until it is configured; then it begins with the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where OpenBao finds the cluster."""

    host: str
    authority: str


class Auth(Part):
    def check(self, want: Resource) -> Sequence[str]:
        problems = list(super().check(want))
        if not problems and not want.spec.get("cluster"):
            problems.append("the spec does not name the cluster")
        return problems

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        backend = f"cluster:{want.spec['cluster']}"
        bodies = (
            (manifests.account(manifests.REVIEWER), "make the account that reviews tokens"),
            (manifests.reviewer_binding(), "let it review tokens"),
            (manifests.account(manifests.PROOF), "make the account that proves the login"),
        )
        return [Manifest(backend=backend, body=body, why=why) for body, why in bodies]

    # Looking.

    async def look(self, want: Resource, seen: dict[str, Any]) -> dict[str, Any]:
        cluster = str(want.spec["cluster"])
        path = f"kubernetes/{cluster}"
        asked = await self._roles(want)

        def read(bao: Bao) -> tuple[Facts | None, Facts | None, Mapping[str, Facts | None]]:
            mount = (bao.read("sys/auth") or {}).get(f"{path}/")
            if mount is None or (want.absent and not _ours(mount)):
                return None, None, {}  # what somebody else mounted is nothing to take away
            roles = {name: bao.read(f"auth/{path}/role/{name}") for name in asked}
            return mount, bao.read(f"auth/{path}/config"), roles

        mount, configured, roles = await self.ask(want, read)
        if mount is None and not seen:
            return {}
        place = await self._place(want)
        facts: dict[str, Any] = {
            "parts": seen.get("parts", {}),
            "mounted": mount is not None,
            "configured": configured is not None,
            "place": {"host": place.host, "authority": place.authority},
        }
        if mount is None:
            return facts
        wrong = [name for name, body in asked.items() if not _fits(body, roles.get(name))]
        facts["roles"] = {"missing": len(wrong), "names": wrong}
        audiences = {str((role or {}).get("audience") or "") for role in roles.values() if role}
        if audiences and "" not in audiences:
            facts["audience"] = sorted(audiences)
        facts["asked"] = {name: asked[name] for name in wrong}
        if configured is not None:
            facts["current"] = _current(configured, place)
            facts["renew"] = self._renew(mount)
            facts["observed"] = self._told(mount)
            if PROOF_ROLE not in wrong:
                facts["login"] = await self._login(want, path)
        if facts.get("login") == "works" and facts["observed"]:
            version = facts["observed"]["credentials"]["token-reviewer"]["version"]
            facts["observed"]["uses"] = {"token-reviewer": version}
        return facts

    async def _login(self, want: Resource, path: str) -> str:
        """A login with a token of our own account. What it gives is a batch token: it lies in no
        store and ends by itself, so nothing has to be given back."""
        jwt = await self._token(want, manifests.PROOF, (AUDIENCE,), PROOF_TTL)
        if jwt is None:
            return "refused"

        def login(bao: Bao) -> None:
            bao.login(path, PROOF_ROLE, jwt)

        for _ in range(ASKED):
            try:
                await self.access.ask_as_nobody(want, login)
            except (client.Denied, client.Refused):
                continue
            return "works"
        return "refused"

    async def _token(
        self, want: Resource, account: str, audiences: Sequence[str], seconds: int
    ) -> Secret | None:
        kube = self.tools.clusters.client(f"cluster:{want.spec['cluster']}")
        space = manifests.SYSTEM
        try:
            return (await tokens.of_account(kube, space, account, seconds, audiences)).secret
        except errors.NotFound:
            return None

    async def _place(self, want: Resource) -> Place:
        """Address and authority of the cluster, as its garden tells them; of an adopted one, as
        its kubeconfig and the cluster itself do."""
        cluster = str(want.spec["cluster"])
        spec = fleet.document(self.topology(), cluster)
        adopted = inside(spec, "adopted")
        if adopted:
            kubeconfig = await self.tools.secrets.read(adopted["access"], want)
            published = await self._published(f"cluster:{cluster}", OWN_CA, manifests.SYSTEM)
            return _found(cluster, config.read(kubeconfig).server, published)
        garden, namespace = f"garden:{want.region}", f"garden-{spec['garden']['project']}"
        cache = await self.tools.clusters.cache(garden, "core.gardener.cloud", "Shoot", namespace)
        status = inside(cache.get(cluster, namespace, by=want.ref), "status")
        addresses: list[Mapping[str, Any]] = status.get("advertisedAddresses") or []
        ordered = sorted(addresses, key=lambda one: one.get("name") != "external")
        host = str(ordered[0]["url"]) if ordered else ""
        return _found(
            cluster, host, await self._published(garden, f"{cluster}.ca-cluster", namespace)
        )

    async def _published(self, backend: str, name: str, namespace: str) -> str:
        cache = await self.tools.clusters.cache(backend, "", "ConfigMap", namespace)
        return str(inside(cache.get(name, namespace), "data").get("ca.crt") or "")

    def _renew(self, mount: Facts) -> bool:
        """Whether the reviewer's token is to be replaced: by what the mount's description says."""
        until = _until(mount)
        soon = (self.tools.clock.now() + RENEW_BEFORE).isoformat(timespec="seconds")
        return until < soon

    def _told(self, mount: Facts) -> dict[str, Any]:
        """For the ledger."""
        until = _until(mount)
        if not until:
            return {}
        ends = datetime.fromisoformat(until)
        told = {
            "version": until,
            "madeAt": (ends - REVIEWER_TTL).isoformat(),
            "expires": until,
            "next": (ends - RENEW_BEFORE).isoformat(),
        }
        return {"credentials": {"token-reviewer": told}}

    async def _roles(self, want: Resource) -> dict[str, dict[str, Any]]:
        """What is asked of each role of the mount."""
        cluster, topology = str(want.spec["cluster"]), self.topology()
        policies = grants.of_cluster(topology, want.region, self.mount(want), cluster)
        asked = {
            PROOF_ROLE: {
                **_role(manifests.PROOF, manifests.SYSTEM, ["default"], AUDIENCE, "10m"),
                "token_type": "batch",
            },
            f"eso-{cluster}": _role(OPERATOR, OPERATOR, policies, AUDIENCE, "1h"),
        }
        if want.spec.get("role") == "control-plane":
            space, own = f"openstack-{cluster}", await self._own_audience(want)
            if not own:
                return asked
            asked[TENANT] = _role("eso-tenant-auth", space, [f"eso-tenant-{cluster}"], own, "1h")
            for service in grants.databases(topology, want.region, cluster):
                name, policy = f"{service}-db", f"{service}-db-{cluster}"
                # The token must outlive the user: revoking it would end the user's lease.
                asked[name] = _role(f"{service}-db-creds", space, [policy], own, "72h")
        return asked

    async def _own_audience(self, want: Resource) -> str:
        """The audience that tokens of the cluster have unless one is asked for: the operator of a
        control plane asks for none. Empty before our account is there to tell it."""
        kube = self.tools.clusters.client(f"cluster:{want.spec['cluster']}")
        account = (manifests.SYSTEM, manifests.PROOF)
        try:
            found = (await tokens.of_account(kube, *account, PROOF_TTL)).audiences
        except errors.NotFound:
            return ""
        return found[0] if found else ""

    # Doing.

    def propose(self, want: Resource, seen: Facts) -> Sequence[Step]:
        if "place" not in seen:
            return ()
        cluster = str(want.spec["cluster"])
        if not seen["mounted"]:
            args = {"path": f"kubernetes/{cluster}"}
            why = f"mount the login of cluster {cluster}"
            return [make_step(want, MOUNT, args, why=why, deadline=DEADLINE)]
        steps: list[Step] = []
        why = self._why_configure(cluster, seen)
        if why:
            args = {"path": f"kubernetes/{cluster}", **seen["place"]}
            steps.append(make_step(want, CONFIGURE, args, why=why, deadline=DEADLINE, writes=2))
        for name in seen["roles"]["names"]:
            args = {"path": f"kubernetes/{cluster}", "role": name, "body": seen["asked"][name]}
            why = f"write the role {name}, with its audience"
            steps.append(make_step(want, ROLE, args, why=why, deadline=DEADLINE))
        return steps

    def _why_configure(self, cluster: str, seen: Facts) -> str:
        if not seen["configured"]:
            return f"tell OpenBao where cluster {cluster} is and how to review its tokens"
        if not seen["current"]:
            return f"tell OpenBao where cluster {cluster} is now; it still asks its predecessor"
        if seen.get("renew"):
            return f"give OpenBao a new token to review those of {cluster} with"
        if seen.get("login") == "refused":
            return f"configure the login of {cluster} again: a login that should work is refused"
        return ""

    def removal(self, want: Resource, seen: Facts) -> Sequence[Step]:
        if not seen.get("mounted"):
            return ()
        args = {"path": f"kubernetes/{want.spec['cluster']}"}
        why = f"end the login of cluster {want.spec['cluster']}: it was retired"
        destroyed = [want.ref]
        return [make_step(want, UNMOUNT, args, why=why, deadline=DEADLINE, destroys=destroyed)]

    async def act(self, want: Resource, step: Step) -> Outcome:
        path = str(step.args["path"])
        match step.verb:
            case "mount-auth":
                await self.ask(want, lambda bao: _mount(bao, path))
            case "configure-auth":
                return await self._configure(want, step.args)
            case "write-role":
                where = f"auth/{path}/role/{step.args['role']}"
                await self.ask(want, lambda bao: bao.write(where, step.args["body"]))
            case "unmount-auth":
                await self.ask(want, lambda bao: _unmount(bao, path))
            case _:
                return await super().act(want, step)
        return Done()

    async def _configure(self, want: Resource, args: Facts) -> Outcome:
        path = str(args["path"])
        seconds = int(REVIEWER_TTL.total_seconds())
        reviewer = await self._token(want, manifests.REVIEWER, (), seconds)
        if reviewer is None:
            raise errors.NotFound(f"the account {manifests.REVIEWER} is not there yet")
        until = (self.tools.clock.now() + REVIEWER_TTL).isoformat(timespec="seconds")
        body = {
            "kubernetes_host": args["host"],
            "kubernetes_ca_cert": args["authority"],
            "disable_local_ca_jwt": True,
        }

        def write(bao: Bao) -> None:
            bao.write(f"auth/{path}/config", {**body, "token_reviewer_jwt": reviewer.reveal()})
            bao.write(f"sys/auth/{path}/tune", {"description": f"{_UNTIL}{until}"})

        await self.ask(want, write)
        return Done()


def _found(cluster: str, host: str, authority: str) -> Place:
    if not host:
        raise errors.Unreachable(f"the address of cluster {cluster} is not known yet")
    if not authority:
        raise errors.Unreachable(f"the authority of cluster {cluster} is not published yet")
    return Place(host=host.rstrip("/"), authority=authority)


def _until(mount: Facts) -> str:
    """When the reviewer's token ends; empty if fleetd did not write it."""
    return str(mount.get("description") or "").partition(_UNTIL)[2]


def _mount(bao: Bao, path: str) -> None:
    if f"{path}/" not in (bao.read("sys/auth") or {}):
        bao.write(f"sys/auth/{path}", {"type": "kubernetes", "description": _NEW})


def _unmount(bao: Bao, path: str) -> None:
    if _ours((bao.read("sys/auth") or {}).get(f"{path}/")):
        bao.ask("delete", f"sys/auth/{path}")


def _ours(mount: Facts | None) -> bool:
    return str((mount or {}).get("description") or "").startswith((_NEW, _UNTIL))


def _role(
    account: str, namespace: str, policies: Sequence[str], audience: str, ttl: str
) -> dict[str, Any]:
    longest = "4h" if ttl == "1h" else ttl
    return {
        "bound_service_account_names": [account],
        "bound_service_account_namespaces": [namespace],
        "token_policies": list(policies),
        "audience": audience,
        "token_ttl": ttl,
        "token_max_ttl": longest,
    }


def _fits(asked: Mapping[str, Any], live: Facts | None) -> bool:
    if live is None:
        return False
    same = ("bound_service_account_names", "bound_service_account_namespaces", "token_policies")
    if any(list(live.get(key) or ()) != list(asked[key]) for key in same):
        return False
    return live.get("audience") == asked["audience"]


def _current(live: Facts, place: Place) -> bool:
    host = str(live.get("kubernetes_host") or "").rstrip("/")
    authority = str(live.get("kubernetes_ca_cert") or "").strip()
    return host == place.host and authority == place.authority.strip()
