"""
What limits the planner: windows, freezes, budgets, pauses, approvals and consents. Pure data.

The Region documents give the first three; people give the rest while the daemon runs. A Policy is
frozen: whoever changes it makes a new one (`dataclasses.replace`) and tells the planner.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fleetd.plan import words
from fleetd.plan.windows import Freeze, Window
from topology.documents import region
from topology.resource import Ref, Resource

ALL = "all"
"""The scope of a pause that stops everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    scope: str
    """`all`, `region:<region>`, `kind:<kind>` or `<kind>/<name>`."""
    who: str
    why: str
    since: datetime

    def __str__(self) -> str:
        since = words.moment(self.since)
        return f"paused by {self.who} since {since}: {self.why} (pause on {self.scope})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """How many of a failure domain may be down at once: a number, or a share such as `10%`."""

    rack: int | str = 1
    zone: int | str = "10%"
    pool: int | str = "10%"
    clusters: int | str = 1

    def of_level(self, level: str) -> int | str | None:
        """The share for a domain such as `rack:eu-1/r1`; None where nothing limits it."""
        match level:
            case "rack":
                return self.rack
            case "zone":
                return self.zone
            case "pool":
                return self.pool
            case "role":
                return self.clusters
            case _:
                return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionPolicy:
    windows: tuple[Window, ...] = ()
    """Without any, disruptive work may start at all times."""
    freezes: tuple[Freeze, ...] = ()
    budgets: Budgets = Budgets()

    @classmethod
    def of(cls, spec: region.RegionSpec) -> "RegionPolicy":
        given = spec.budgets
        return cls(
            windows=tuple(Window.of(window) for window in spec.windows),
            freezes=tuple(Freeze.of(freeze) for freeze in spec.freezes),
            budgets=Budgets(
                rack=given.rack, zone=given.zone, pool=given.pool, clusters=given.clusters
            ),
        )


_DEFAULT = RegionPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    regions: Mapping[str, RegionPolicy] = field(default_factory=dict[str, RegionPolicy])
    pauses: Mapping[str, Pause] = field(default_factory=dict[str, Pause])
    """By scope."""
    approvals: frozenset[str] = frozenset()
    """Ids of steps that a person let pass. The engine removes one when its step begins, so that
    one approval is one try."""
    consents: frozenset[str] = frozenset()
    """Ids of mass changes that a person let pass."""
    stale_after: timedelta = timedelta(minutes=5)
    """An observation older than this is not a fact. Ten looks of 30 s may fail before that."""
    mass_max: float = 0.10
    """Share of a region's servers that may be disrupted or destroyed without consent."""

    @classmethod
    def of(
        cls,
        documents: Iterable[object],
        *,
        pauses: Iterable[Pause] = (),
        approvals: Iterable[str] = (),
        consents: Iterable[str] = (),
        stale_after: timedelta = timedelta(minutes=5),
        mass_max: float = 0.10,
    ) -> "Policy":
        """From all documents; those that are not a Region are passed over."""
        return cls(
            regions={
                document.metadata.name: RegionPolicy.of(document.spec)
                for document in documents
                if isinstance(document, region.Region)
            },
            pauses={pause.scope: pause for pause in pauses},
            approvals=frozenset(approvals),
            consents=frozenset(consents),
            stale_after=stale_after,
            mass_max=mass_max,
        )

    def region(self, name: str) -> RegionPolicy:
        return self.regions.get(name, _DEFAULT)

    def pause(self, ref: Ref, region_name: str) -> Pause | None:
        """What pauses this thing; the narrowest of several."""
        return pausing(self.pauses, ref, region_name)


def pausing(pauses: Mapping[str, Pause], ref: Ref, region_name: str) -> Pause | None:
    """Of these the one that holds a thing; the narrowest of several."""
    if not pauses:
        return None
    for scope in (f"{ref.kind}/{ref.name}", f"kind:{ref.kind}", f"region:{region_name}", ALL):
        pause = pauses.get(scope)
        if pause is not None:
            return pause
    return None


def touching(
    pauses: Mapping[str, Pause], region_name: str, resources: Mapping[Ref, Resource]
) -> list[Pause]:
    """Those that hold something in a region, the widest first. It costs the pauses, never the
    fleet."""
    found: list[Pause] = []
    for scope, one in pauses.items():
        what, _, name = scope.partition(":")
        kind, slash, rest = scope.partition("/")
        want = resources.get(Ref(kind, rest)) if slash else None
        wide = scope == ALL or what == "kind" or (what, name) == ("region", region_name)
        if wide or (want is not None and want.region == region_name):
            found.append(one)
    return sorted(found, key=lambda one: ("/" in one.scope, one.scope != ALL, one.scope))


def mass_consent(region_name: str, digest: str) -> str:
    """The id of the consent to a mass change of one region towards one topology."""
    return f"mass-{region_name}-{digest[:12]}"
