"""
The bootstrap secrets of a control plane: made once, never overwritten.

Each is written with cas=0, so that of two writers one wins and nobody's value is lost. The
metadata is stamped first: a path that is pushed to later must carry it, and a stamp without a
version still counts as missing. When the control plane is retired, what fleetd made goes, with all
its versions; what others put beside it stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drivers.openbao import fleet, rotation, values
from drivers.openbao.client import Bao
from drivers.openbao.parts import DEADLINE, Part
from fleetd.kube import facts
from fleetd.secrets import Secret
from fleetd.vocabulary import Done, Failed, Outcome, Step, make_step
from topology import keeping
from topology.resource import Facts, Resource

MAKE = "make-secret"
STAMP = "stamp"
FORGET = "forget-secret"
MANAGED_BY = "managed-by"
PUSHER = "external-secrets"
MAKER = "fleetd-made"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    path: str
    recipes: Mapping[str, str]
    """Property to how its value looks."""
    pushed: bool = False
    """Whether External Secrets writes to it later."""


def wanted(cluster: str, clouds: Sequence[fleet.Cloud]) -> list[Bootstrap]:
    space = f"bootstrap/openstack-{cluster}"
    found = [
        Bootstrap(path=f"infrastructure/mariadb-{cluster}", recipes={"root-password": "text:32"}),
        Bootstrap(path=f"{space}/garage/admin-token", recipes={"token": "hex:64"}),
        Bootstrap(
            path=f"{space}/garage/s3-credentials",
            recipes={"access-key-id": "garage-id", "secret-access-key": "hex:64"},
        ),
        Bootstrap(path=f"{space}/openbao-instance/unseal-key", recipes={"key": "base64:32"}),
    ]
    for cloud in clouds:
        admin = f"{space}/{cloud.name}-keystone/admin"
        found.append(Bootstrap(path=admin, recipes={"password": "text:32"}, pushed=True))
        if "horizon" in cloud.services:
            key = f"{space}/{cloud.name}-horizon/secret-key"
            found.append(Bootstrap(path=key, recipes={"secret-key": "text:64"}))
    return found


class SecretPaths(Part):
    async def look(self, want: Resource, seen: dict[str, Any]) -> dict[str, Any]:
        del seen
        if want.absent:
            left = await self.ask(want, lambda bao: self._left(want, bao))
            return {"left": left} if left else {}
        asked, mount = self._wanted(want), self.mount(want)
        known = await self.ask(
            want, lambda bao: {one.path: bao.metadata(mount, one.path) for one in asked}
        )
        missing: list[str] = []
        unstamped: list[str] = []
        for one in asked:
            found = known[one.path]
            if found is None or not found.get("current_version"):
                missing.append(one.path)
            elif one.pushed and facts.part(found, "custom_metadata").get(MANAGED_BY) != PUSHER:
                unstamped.append(one.path)
        if len(missing) == len(asked):
            return {}
        return {
            "paths": {"missing": len(missing), "unstamped": len(unstamped)},
            "missing": missing,
            "unstamped": unstamped,
            "observed": {"credentials": self._told(want, known)},
        }

    def _told(self, want: Resource, known: Mapping[str, Facts | None]) -> dict[str, Facts]:
        """For the ledger: of what the catalogue says is made here."""
        told: dict[str, Facts] = {}
        for made in self.tools.rules.component(want.ref.kind).spec.makes:
            for path, found in known.items():
                version = rotation.newest(found)
                if found and version and f"openbao:{path}" in keeping.where(made, want):
                    born = rotation.made(found, version).isoformat()
                    told[made.name] = {"version": version, "madeAt": born}
        return told

    def propose(self, want: Resource, seen: Facts) -> Sequence[Step]:
        steps: list[Step] = []
        for one in self._wanted(want):
            if not seen or one.path in seen["missing"]:
                args = {"path": one.path, "recipes": dict(one.recipes), "pushed": one.pushed}
                why = f"make the secret {one.path}, once"
                steps.append(make_step(want, MAKE, args, why=why, deadline=DEADLINE, writes=2))
            elif one.path in seen["unstamped"]:
                why = f"stamp {one.path}: External Secrets refuses to push to it otherwise"
                steps.append(make_step(want, STAMP, {"path": one.path}, why=why, deadline=DEADLINE))
        return steps

    def _left(self, want: Resource, bao: Bao) -> dict[str, int]:
        """Paths with their newest version. Also what was made for clouds that are gone by now; the
        mark tells."""
        cluster, mount = str(want.spec["cluster"]), self.mount(want)
        paths = [f"infrastructure/mariadb-{cluster}"]
        folders = [f"bootstrap/openstack-{cluster}"]
        while folders:
            folder = folders.pop()
            for key in bao.keys(f"{mount}/metadata/{folder}"):
                where = folders if key.endswith("/") else paths
                where.append(f"{folder}/{key.rstrip('/')}")
        known = {path: bao.metadata(mount, path) for path in sorted(paths)}
        return {path: rotation.newest(found) for path, found in known.items() if _made(want, found)}

    def removal(self, want: Resource, seen: Facts) -> Sequence[Step]:
        return [
            make_step(
                want,
                FORGET,
                {"path": path, "version": version},
                why=f"delete the secret {path}: it was retired",
                deadline=DEADLINE,
                destroys=[want.ref],
            )
            for path, version in facts.part(seen, "left").items()
        ]

    async def act(self, want: Resource, step: Step) -> Outcome:
        mount, path = self.mount(want), str(step.args["path"])
        if step.verb == FORGET:
            return await self._forget(want, path, int(step.args["version"]))
        if step.verb == STAMP:
            await self.ask(want, lambda bao: bao.stamp(mount, path, {MANAGED_BY: PUSHER}))
            return Done()
        if step.verb != MAKE:
            return await super().act(want, step)
        recipes: Mapping[str, str] = step.args["recipes"]
        custom = {MAKER: want.ref.name} | ({MANAGED_BY: PUSHER} if step.args["pushed"] else {})

        def make(bao: Bao) -> None:
            known = bao.metadata(mount, path)
            if known is not None and known.get("current_version"):
                return
            bao.stamp(mount, path, custom)
            made = {key: Secret(values.make(how, bao.random)) for key, how in recipes.items()}
            bao.put(mount, path, made, cas=0)  # False: somebody else's value is as good

        await self.ask(want, make)
        return Done()

    async def _forget(self, want: Resource, path: str, version: int) -> Outcome:
        """With all its versions, if it is still what was looked at: ours, and as new."""
        mount = self.mount(want)

        def forget(bao: Bao) -> bool:
            found = bao.metadata(mount, path)
            same = _made(want, found) and rotation.newest(found) == version
            if same:
                bao.ask("delete", f"{mount}/metadata/{path}")
            return same or found is None

        if not await self.ask(want, forget):
            said = f"somebody wrote {mount}/{path} since it was looked at; it is looked at again"
            return Failed("Changed", said, retry=True)
        return Done()

    def _wanted(self, want: Resource) -> list[Bootstrap]:
        cluster = str(want.spec["cluster"])
        mine = [
            cloud
            for cloud in fleet.clouds(self.topology(), want.region)
            if cloud.control_plane == cluster
        ]
        return wanted(cluster, mine)


def _made(want: Resource, known: Facts | None) -> bool:
    """Whether fleetd made the path, for this control plane."""
    return facts.part(known, "custom_metadata").get(MAKER) == want.ref.name
