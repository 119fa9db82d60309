"""
One object that should be there: what it is, where, whose it is, and why it is written now; pure.

Whatever fleetd writes bears its marks (`marked`), so that it is known again by anybody, also
without fleetd's own memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleetd.kube import facts, fights
from topology.resource import Facts, Ref, Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One object that should be there, and on which backend."""

    backend: str
    body: Facts
    """apiVersion may leave out the version (`helm.toolkit.fluxcd.io`): it is discovered."""
    why: str
    """Shown to the operator before it is written."""
    force: bool = False
    """Take over fields that others own. Only where the plan says so."""
    disrupts: frozenset[Ref] = frozenset()
    place: str = ""
    """Tells apart what has the same name on several clusters."""
    shared: bool = False
    """Made if it is missing and else left alone: what comes into it is others'. It gets no marks
    and does not go with what needed it."""

    @property
    def group(self) -> str:
        return group_of(self.body)

    @property
    def kind(self) -> str:
        return str(self.body["kind"])

    @property
    def gk(self) -> tuple[str, str]:
        return self.group, self.kind

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.body["metadata"].get("namespace", ""))

    @property
    def key(self) -> str:
        """How the part is called in facts and steps."""
        where = f"{self.namespace}/" if self.namespace else ""
        place = f" on {self.place}" if self.place else ""
        return f"{self.kind} {where}{self.name}{place}"


def group_of(body: Facts) -> str:
    """Of its API; empty for the core group."""
    said = str(body["apiVersion"])
    return "" if said in ("", "v1") else said.partition("/")[0]


def namespace(name: str, backend: str, place: str = "") -> Manifest:
    """For objects in a namespace that may be others' as well."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    why = f"make the namespace {name}, which is missing"
    return Manifest(backend=backend, body=body, why=why, place=place, shared=True)


def owner(want: Resource) -> str:
    return f"{want.ref.kind}.{want.ref.name}"


def taken(live: Facts, mine: str) -> str:
    """Who has an object by now that fleetd made for `mine`, in words; empty: nobody else. Another
    thing of fleetd's leaves its mark as owner, another controller a reference to its own."""
    metadata = facts.part(live, "metadata")
    held = str(facts.part(metadata, "labels").get(facts.OWNER) or "")
    if held and held != mine:
        return held
    above: Facts = {}
    for one in facts.members(metadata, "ownerReferences"):
        above = one if one.get("controller") else above
    return f"{above.get('kind')}/{above.get('name')}" if above else ""


def part(manifest: Manifest, live: Facts, want: Resource) -> dict[str, Any]:
    """What is told of one object that is there."""
    other = taken(live, owner(want))
    return {
        "made": facts.made_from(live),
        "differs": facts.differences(manifest.body, live),
        "deleting": bool(live["metadata"].get("deletionTimestamp")),
        "uid": str(live["metadata"].get("uid", "")),
        **({"taken": other} if other else {}),
    }


def marked(body: Facts, want: Resource) -> dict[str, Any]:
    """The manifest with the marks that fleetd leaves on what it makes."""
    made = facts.copy(_labelled(body, want))
    metadata = made["metadata"]
    metadata["annotations"] = {
        **metadata.get("annotations", {}),
        facts.GENERATION: facts.digest(made),
    }
    return made


def mark(body: Facts, want: Resource) -> str:
    """The digest that `marked` leaves on it; asked at each look, and so without a copy."""
    return facts.digest(_labelled(body, want))


def _labelled(body: Facts, want: Resource) -> dict[str, Any]:
    metadata: Facts = body["metadata"]
    labels = {
        **metadata.get("labels", {}),
        facts.MANAGED_BY: facts.MANAGER,
        facts.REGION: want.region,
        facts.OWNER: owner(want),
    }
    return {**body, "metadata": {**metadata, "labels": labels}}


def reason(manifest: Manifest, digest: str, part: Mapping[str, Any] | None) -> str:
    """Why it is written now; empty if it is as it should be."""
    if part is None:
        return manifest.why
    if part["deleting"] or part.get("taken") or fights.given_up(part):
        return ""
    if part.get("by"):
        return f"{manifest.why} ({part['by']} changed {', '.join(part['differs']) or 'it'})"
    if part["made"] != digest:
        made = "fleetd did not write it as it is" if part["made"] else "fleetd did not write it yet"
        return f"{manifest.why} ({made})"
    if part["differs"]:
        return f"{manifest.why} (somebody changed {', '.join(part['differs'])})"
    return ""
