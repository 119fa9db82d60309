"""
What each kind that the openbao driver looks after has in common.

A part looks, proposes and acts for one kind; the driver finds it by the kind of the Resource and
does the rest. `look` gets what was seen of the part's Kubernetes objects and adds what OpenBao
says; an empty answer means that the thing is not there. One rule: `propose` reads nothing but its
arguments and the topology.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from drivers.openbao import fleet
from drivers.openbao.access import Access
from drivers.openbao.client import Bao
from fleetd.kube.facts import part as inside
from fleetd.objects import Manifest
from fleetd.tools import Tools
from fleetd.vocabulary import Failed, Outcome, Step
from topology.resource import Facts, Resource, Topology

T = TypeVar("T")
DEADLINE = timedelta(seconds=60)
"""One act. OpenBao answers in milliseconds; what takes longer waits for an election."""


class Part:
    def __init__(self, tools: Tools, access: Access) -> None:
        self.tools = tools
        self.access = access

    def check(self, want: Resource) -> Sequence[str]:
        """What is wrong with this spec, in words."""
        given = inside(want.spec, "secrets")
        if not given.get("mount") or not given.get("address"):
            return ["the spec does not say where OpenBao is (secrets.address, secrets.mount)"]
        return ()

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        del want
        return ()

    async def look(self, want: Resource, seen: dict[str, Any]) -> dict[str, Any]:
        """Facts; may raise BaoError, KubeError or SecretError where it could not look."""
        raise NotImplementedError

    def propose(self, want: Resource, seen: Facts) -> Sequence[Step]:
        raise NotImplementedError

    def removal(self, want: Resource, seen: Facts) -> Sequence[Step]:
        """Beside the manifests; most goes with OpenBao itself."""
        del want, seen
        return ()

    async def act(self, want: Resource, step: Step) -> Outcome:
        del want
        return Failed("BadStep", f"{step.verb} is not known to the openbao driver", retry=False)

    # Helpers.

    def topology(self) -> Topology:
        return self.tools.fleet.everything()

    def mount(self, want: Resource) -> str:
        return str(fleet.secrets_of(self.topology(), want)["mount"])

    async def ask(self, want: Resource, call: Callable[[Bao], T]) -> T:
        return await self.access.ask(want, call)
