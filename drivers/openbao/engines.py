"""The secret engines. One of another type at a path of ours is never replaced: it may hold data."""

from collections.abc import Mapping, Sequence
from typing import Any

from drivers.openbao.client import Bao
from drivers.openbao.parts import DEADLINE, Part
from fleetd.kube.facts import part as inside
from fleetd.vocabulary import Done, Failed, Outcome, Step, make_step
from topology.resource import Facts, Resource

MOUNT = "mount"
PKI_MAX = "87600h"


def wanted(kv: str) -> Mapping[str, dict[str, Any]]:
    """By path, what is asked of sys/mounts."""
    return {
        kv: {"type": "kv", "options": {"version": "2"}},
        "pki": {"type": "pki", "config": {"max_lease_ttl": PKI_MAX}},
        "database/mariadb": {"type": "database"},
        "barbican": {"type": "kv", "options": {"version": "2"}},
    }


class Engines(Part):
    async def look(self, want: Resource, seen: dict[str, Any]) -> dict[str, Any]:
        del seen
        if want.absent:
            return {}  # they go with OpenBao itself; in one of somebody else's they stay
        found = await self.ask(want, lambda bao: bao.read("sys/mounts") or {})
        missing: list[str] = []
        wrong: list[str] = []
        for path, asked in wanted(self.mount(want)).items():
            live: Mapping[str, Any] | None = found.get(f"{path}/")
            if live is None:
                missing.append(path)
            elif not _fits(asked, live):
                wrong.append(path)
        if len(missing) == len(wanted(self.mount(want))):
            return {}
        return {
            "mounts": {"missing": len(missing), "wrong": len(wrong)},
            "missing": missing,
            "wrong": wrong,
        }

    def propose(self, want: Resource, seen: Facts) -> Sequence[Step]:
        asked = wanted(self.mount(want))
        absent: Sequence[str] = seen["missing"] if seen else list(asked)
        return [
            make_step(
                want,
                MOUNT,
                {"path": path, "engine": asked[path]},
                why=f"mount the engine {asked[path]['type']} at {path}/",
                deadline=DEADLINE,
            )
            for path in absent
        ]

    async def act(self, want: Resource, step: Step) -> Outcome:
        path, asked = str(step.args["path"]), step.args["engine"]

        def mount(bao: Bao) -> Mapping[str, Any]:
            live = inside(bao.read("sys/mounts"), f"{path}/")
            if not live:
                bao.write(f"sys/mounts/{path}", asked)
            return live

        live = await self.ask(want, mount)
        if live and not _fits(asked, live):
            return Failed("WrongEngine", f"there is another engine at {path}/", retry=False)
        return Done()


def _fits(asked: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    options: Mapping[str, str] = live.get("options") or {}
    version = asked.get("options", {}).get("version")
    return live.get("type") == asked["type"] and (
        version is None or options.get("version") == version
    )
