"""
Planted bugs in drivers: what each system needs to be guarded from, and secrets that are made once.

A mutant takes one guard away, or does one thing in the plain way that does not survive a restart.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
import pytest

from drivers.flux import driver as flux
from drivers.flux import manifests as folders
from drivers.flux import targets
from drivers.gardener import access, credentials
from drivers.gardener import driver as gardener
from drivers.gardener import manifests as shoots
from drivers.ironcore import bmcs
from drivers.ironcore import driver as ironcore
from drivers.openbao import access as bao
from drivers.openbao import auth, client, grants, members, secretpaths, values
from fleetd import objects
from fleetd.engine import answers
from fleetd.secrets import Secret
from fleetd.vocabulary import Done, Observation, Outcome, Step, make_step
from topology.resource import Facts, Resource

# -- Secrets ---------------------------------------------------------------------------------


def a_stamp_is_a_secret(patch: pytest.MonkeyPatch) -> None:
    """A path that is known counts as written, though it may have no version yet."""
    real = client.Bao.metadata

    def metadata(self: Any, mount: str, path: str) -> dict[str, Any] | None:
        known = real(self, mount, path)
        return {**known, "current_version": known.get("current_version") or 1} if known else None

    patch.setattr(client.Bao, "metadata", metadata)


def a_claim_is_the_keys(patch: pytest.MonkeyPatch) -> None:
    """The Secret for OpenBao's keys is there, so somebody must have initialised it."""
    real = members.Members._claim

    async def claim(self: Any, want: Resource, backend: str) -> bool:
        there = await self.access.output(backend)
        return True if there is not None else await real(self, want, backend)

    patch.setattr(members.Members, "_claim", claim)


def keys_stay_in_memory(patch: pytest.MonkeyPatch) -> None:
    """OpenBao is opened with the keys at hand; writing them down can wait."""
    output = bao.Access.output
    held: dict[str, Any] = {}

    async def keep(self: Any, want: Resource, backend: str) -> Outcome:
        del want
        held[backend] = msgspec.json.decode(self._held.pop(backend).reveal())
        return Done()

    async def at_hand(self: Any, backend: str) -> Any:
        return held.get(backend) or await output(self, backend)

    patch.setattr(members.Members, "_keep", keep)
    patch.setattr(bao.Access, "output", at_hand)


def secrets_are_made_at_start(patch: pytest.MonkeyPatch) -> None:
    """Makes every password anew after a start, to be on the safe side."""
    propose = secretpaths.SecretPaths.propose

    def anew(self: Any, want: Resource, seen: Facts) -> Sequence[Step]:
        del seen
        made: set[str] = self.__dict__.setdefault("made", set())
        return [step for step in propose(self, want, {}) if step.args["path"] not in made]

    async def act(self: Any, want: Resource, step: Step) -> Outcome:
        mount, path, recipes = self.mount(want), step.args["path"], step.args["recipes"]

        def write(bao: client.Bao) -> None:
            newest = int((bao.metadata(mount, path) or {}).get("current_version") or 0)
            made = {key: Secret(values.make(recipes[key], bao.random)) for key in recipes}
            bao.put(mount, path, made, cas=newest)

        await self.ask(want, write)
        self.__dict__.setdefault("made", set()).add(path)
        return Done()

    patch.setattr(secretpaths.SecretPaths, "propose", anew)
    patch.setattr(secretpaths.SecretPaths, "act", act)


def secrets_travel_in_steps(patch: pytest.MonkeyPatch) -> None:
    """The kubeconfig that Flux gets is an argument of its step, and the journal takes it so."""
    real = flux.FluxDriver.propose

    def propose(self: Any, want: Resource, seen: Observation) -> Sequence[Step]:
        steps: list[Step] = []
        for step in real(self, want, seen):
            args = dict(step.args)
            if step.verb == targets.HAND_OVER:
                ours = self.tools.clusters.kubeconfig(args["cluster"]).reveal()
                args["config"] = msgspec.json.decode(ours)
            steps.append(make_step(want, step.verb, args, why=step.why, deadline=step.deadline))
        return steps

    patch.setattr(flux.FluxDriver, "propose", propose)
    patch.setattr(answers, "args", dict[str, Any])


def roles_without_audience(patch: pytest.MonkeyPatch) -> None:
    """A login role as the documentation shows it."""
    real = auth._role

    def role(*given: Any) -> dict[str, Any]:
        return {key: value for key, value in real(*given).items() if key != "audience"}

    def fits(asked: Any, live: Any) -> bool:
        same = ("bound_service_account_names", "bound_service_account_namespaces")
        return live is not None and all(list(live[key]) == list(asked[key]) for key in same)

    patch.setattr(auth, "_role", role)
    patch.setattr(auth, "_fits", fits)


def policies_without_metadata(patch: pytest.MonkeyPatch) -> None:
    """A policy for pushing as the documentation shows it; its lint says the same."""

    def pusher(name: str, mount: str, paths: Sequence[str]) -> grants.Policy:
        rules = {f"{mount}/data/{path}": ("create", *grants.PUSH_DATA) for path in paths}
        return grants.Policy(name=name, rules=rules, pushes=tuple(paths))

    def content(*_: Any) -> list[str]:
        return []

    patch.setattr(grants, "pusher", pusher)
    patch.setattr(grants, "lint", content)


def only_the_first_is_unsealed(patch: pytest.MonkeyPatch) -> None:
    """One member that serves is enough."""
    real = members.Members.propose

    def propose(self: Any, want: Resource, seen: Facts) -> Sequence[Step]:
        steps = real(self, want, seen)
        return [step for step in steps if step.args.get("member", "openbao-0") == "openbao-0"]

    patch.setattr(members.Members, "propose", propose)


def lost_keys_start_over(patch: pytest.MonkeyPatch) -> None:
    """A store that nobody can open is thrown away without asking."""
    real = members.Members._reset

    def reset(self: Any, want: Resource, pods: Sequence[Facts]) -> Step:
        asks = real(self, want, pods)
        return make_step(want, asks.verb, asks.args, why=asks.why, deadline=asks.deadline)

    patch.setattr(members.Members, "_reset", reset)


def kubeconfigs_are_for_ever(patch: pytest.MonkeyPatch) -> None:
    """What works now is not renewed."""

    def soon(self: Any, until: datetime | None, want: Resource) -> bool:
        del self, want
        return until is None

    patch.setattr(access.AccessDriver, "_soon", soon)


def good_until_its_end(patch: pytest.MonkeyPatch) -> None:
    """What Flux got is good until its end, whatever the cluster says."""

    async def never(driver: Any, want: Resource, held: Any) -> bool:
        del driver, want, held
        return False

    patch.setattr(targets, "_refused", never)


def a_token_at_every_look(patch: pytest.MonkeyPatch) -> None:
    """The metal API's token in the garden is replaced whenever fleetd starts to look."""
    fresh: dict[int, bool] = {}

    async def look(tools: Any, want: Resource) -> dict[str, Any]:
        found = await real(tools, want)
        if fresh.setdefault(id(tools), True):
            fresh[id(tools)] = False
            return {**found, "secret": "refused"}
        return found

    real = credentials.look
    patch.setattr(credentials, "look", look)


# -- Guards ----------------------------------------------------------------------------------


def a_name_at_every_start(patch: pytest.MonkeyPatch) -> None:
    """The Secret with the password for Git gets a name that is made up."""
    number = 0
    real = objects.ObjectDriver.__init__

    def begin(self: Any, tools: Any) -> None:
        nonlocal number
        real(self, tools)
        number += isinstance(self, flux.FluxDriver)

    def name(region: str) -> str:
        return f"{region}-git-{number}"

    patch.setattr(objects.ObjectDriver, "__init__", begin)
    patch.setattr(folders, "credentials_name", name)


def one_machine_twice(patch: pytest.MonkeyPatch) -> None:
    """Does not ask whether another BMC leads to the same machine."""

    async def nobody(*_: Any, **__: Any) -> str:
        return ""

    patch.setattr(bmcs.Bmcs, "same_machine", nobody)


def maintenance_left_out(patch: pytest.MonkeyPatch) -> None:
    """A Shoot without the block that forbids the garden to update it."""
    real = shoots.shoot

    def shoot(want: Resource) -> Any:
        made = real(want)
        spec = {key: value for key, value in made.body["spec"].items() if key != "maintenance"}
        return replace(made, body={**made.body, "spec": spec})

    patch.setattr(shoots, "shoot", shoot)


def claimed_servers_are_removed(patch: pytest.MonkeyPatch) -> None:
    """A retired server goes, whoever has it: at the look, and at the last look of the step."""
    real = ironcore.IroncoreDriver._removal

    def removal(self: Any, want: Resource, seen: Facts) -> Sequence[Step]:
        free = {key: value for key, value in seen.items() if key not in ("spec", "status")}
        return real(self, want, free)

    def free_by_now(_: Facts | None) -> str:
        return ""

    patch.setattr(ironcore.IroncoreDriver, "_removal", removal)
    patch.setattr(ironcore, "_held", free_by_now)


def quarantine_is_for_ever(patch: pytest.MonkeyPatch) -> None:
    """A BMC that hung once is left alone for good."""
    real = ironcore.IroncoreDriver._writes

    def writes(self: Any, want: Resource, seen: Facts) -> Sequence[Step]:
        return [step for step in real(self, want, seen) if step.verb != ironcore.RELEASE]

    patch.setattr(ironcore.IroncoreDriver, "_writes", writes)


def upgrades_take_nothing_down(patch: pytest.MonkeyPatch) -> None:
    """A Shoot is written like any other object."""
    real = objects.ObjectDriver._writes

    def writes(self: Any, want: Resource, seen: Facts) -> Sequence[Step]:
        if want.ref.kind == "cluster":
            return real(self, want, seen)
        return before(self, want, seen)

    before = gardener.GardenerDriver._writes
    patch.setattr(gardener.GardenerDriver, "_writes", writes)
