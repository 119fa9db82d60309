"""A region whose clusters believe the management cluster: Flux reaches them without kubeconfigs."""

from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from drivers.flux import targets
from fleetd.kube import facts
from fleetd.plan.policy import Policy
from fleetd.sim import loop
from fleetd.sim.twin import Twin
from fleetd.vocabulary import Truth
from tests.twin.stage import EXAMPLES, Power, Region
from topology import read
from topology.resource import Ref

ISSUER = "https://mgmt.sim.invalid"
"""That of the simulated management cluster."""
SECRET, CONFIG = ("", "Secret"), ("", "ConfigMap")
TARGETS = ("cp", "hv", "st")


@lru_cache
def _reading(issuer: str) -> read.Reading:
    """The minimal example; with a trust, if an issuer is given."""
    (example,) = (EXAMPLES / "minimal").glob("*.yaml")
    text = example.read_text("utf-8")
    if issuer:
        text = text.replace("  windows:", f"  trust: {{issuer: {issuer!r}}}\n  windows:", 1)
    with TemporaryDirectory() as folder:
        Path(folder, "region.yaml").write_text(text, "utf-8")
        found = read.read([Path(folder)])
    assert found.topology is not None, found.problems
    return found


def _region(issuer: str) -> Region:
    found = _reading(issuer)
    assert found.topology is not None
    policy = Policy.of(item.document for item in found.bundle.items)
    return Region(found.topology, found.catalogue, policy)


def _held(region: Region, gk: tuple[str, str]) -> set[str]:
    """What Flux has to reach other clusters with."""
    found = region.world.clusters["mgmt"].list(gk, "flux-system")
    names = (str(one["metadata"]["name"]) for one in found)
    return {name for name in names if name.endswith("-kubeconfig")}


def _failing(region: Region) -> set[str]:
    """What Flux cannot do now, in its words."""
    mgmt = region.world.clusters["mgmt"]
    return {
        str(one["message"])
        for gk in targets.USERS
        for obj in mgmt.list(gk)
        for one in facts.members(obj, "status", "conditions")
        if (one["type"], one["status"]) == ("Ready", "False")
        and one["reason"] != "DependencyNotReady"
    }


def test_a_region_comes_up_without_kubeconfigs_for_flux() -> None:
    """All of it is Ready, no Secret of Flux leads anywhere, and nothing is broken."""

    async def main() -> tuple[bool, list[str], set[str], set[str]]:
        region = _region(ISSUER)
        reached = await region.live(Power(), until=lambda twin: twin.quiet())
        broken = await region.judge(reached=reached)
        return reached, broken, _held(region, SECRET), _held(region, CONFIG)

    reached, broken, secrets, configs = loop.run(main())
    assert (reached, broken) == (True, [])
    assert (secrets, configs) == (set(), {f"{name}-kubeconfig" for name in TARGETS})


def test_a_region_turns_from_kubeconfigs_to_tokens() -> None:
    """The clusters are told to believe first, Flux changes over, and the kubeconfigs go."""

    async def main() -> tuple[list[bool], list[set[str]], list[str]]:
        region = _region("")
        bad: set[str] = set()
        reached = [await region.live(Power(), until=lambda twin: twin.quiet())]
        held = [_held(region, SECRET)]
        found = _reading(ISSUER)
        assert found.topology is not None
        region.topology = found.topology
        settled = region.settled()

        def until(twin: Twin) -> bool:
            bad.update(_failing(region))
            return settled(twin)

        reached.append(await region.live(Power(), until=until))
        held.append(_held(region, SECRET))
        return reached, held, [*bad, *await region.judge(reached=reached[-1])]

    reached, held, broken = loop.run(main())
    assert reached == [True, True]
    assert held == [{f"{name}-kubeconfig" for name in TARGETS}, set()]
    assert broken == []


def test_a_wrong_issuer_is_told_and_nothing_goes_on() -> None:
    """Who does not issue the management cluster's tokens is named, with who does."""

    async def main() -> tuple[str, Truth, str, set[str]]:
        region = _region("https://elsewhere.example")
        target = Ref("flux-target", "hv")

        def told(twin: Twin) -> bool:
            ready = twin.core.state.view.ready.get(target)
            return ready is not None and ready.reason == "NotBelieved"

        await region.live(Power(), until=told, within=timedelta(hours=4))
        assert region.twin is not None
        ready = region.twin.core.state.view.ready[target]
        mgmt = region.world.clusters["mgmt"]
        kinds = ("kustomize.toolkit.fluxcd.io", "Kustomization")
        folders = {str(one["metadata"]["name"]) for one in mgmt.list(kinds)}
        return ready.reason, ready.truth, ready.message, {one for one in folders if "hv" in one}

    reason, truth, message, folders = loop.run(main())
    assert (reason, truth) == ("NotBelieved", Truth.FALSE)
    assert f"issued by {ISSUER}, and trust.issuer of the Region is https://elsewhere" in message
    assert folders == set()
