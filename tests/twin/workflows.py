"""The workflows whose crash points are swept; each starts from nothing and ends at rest."""

from dataclasses import replace

from tests.twin.points import Run
from tests.twin.stage import Region, reading
from topology import read


async def bring_up(run: Run) -> None:
    """A whole region from bare servers to a Ready cloud."""
    await run.reach(hunt=True)


async def add_a_rack(run: Run) -> None:
    """Servers are added to a region that is up."""
    await run.reach(hunt=False)
    change(run.region, {"last: 192.0.2.24": "last: 192.0.2.26"})
    await run.reach(hunt=True)


async def upgrade(run: Run) -> None:
    """Kubernetes of one cluster is raised by a patch; nodes stay."""
    await run.reach(hunt=False)
    role = "role: control-plane,"
    change(run.region, {role: f'{role} kubernetes: "1.33.5",'})
    await run.reach(hunt=True)


async def decommission(run: Run) -> None:
    """A document goes: what it named stays as orphans, and nothing is deleted."""
    await run.reach(hunt=False)
    before = dict(run.region.topology.resources)
    change(run.region, {}, without="kind: Cloud")
    left = run.region.topology.resources
    run.region.orphans = {ref: one for ref, one in before.items() if ref not in left}
    await run.reach(hunt=True)


WORKFLOWS = {
    "bring-up": bring_up,
    "add-a-rack": add_a_rack,
    "upgrade": upgrade,
    "decommission": decommission,
}


def change(region: Region, words: dict[str, str], *, without: str = "") -> None:
    """Other documents for the next daemon: the minimal example with some words replaced, or
    without one document."""
    (source,) = reading("minimal").bundle.sources.values()
    parts = source.decode().split("---\n")
    text = "---\n".join(part for part in parts if not without or without not in part)
    for old, new in words.items():
        assert old in text, f"the example does not say {old!r} any more"
        text = text.replace(old, new)
    found = read.read_bytes({"region.yaml": text.encode()})
    assert found.topology is not None, found.problems
    region.topology = found.topology
    consent = f"mass-eu-1-{found.topology.digest[:12]}"
    region.policy = replace(region.policy, consents=region.policy.consents | {consent})
