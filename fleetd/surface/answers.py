"""
What HTTP answers look like, as types: `shapes` and `api` make them, OpenAPI is generated from them.

Plain dictionaries at run time, so that an answer is what is sent; the type checker holds whoever
makes one to these fields. Field names stay. A field may be added, never given another meaning.
Not here: what is asked (`asking`), and errors (`problems`).
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec

Moment = Annotated[str, msgspec.Meta(title="Moment", extra_json_schema={"format": "date-time"})]
RefText = Annotated[
    str, msgspec.Meta(title="RefText", description="KIND/NAME of a thing, e.g. cluster/hv.")
]
Status = Literal["True", "False", "Unknown"]
Doing = Annotated[
    Literal["failing", "unknown", "moving", "waiting", "absent", "ready"],
    msgspec.Meta(
        title="Doing",
        description="What a thing is doing, by its condition and its plan. Moving: somebody works "
        "on it. Waiting: its turn has not come, because of something else.",
    ),
]
Plain = Mapping[str, Any]


class Ready(TypedDict):
    """The Ready condition in short. What nobody judged yet is Unknown."""

    status: Status
    reason: str
    message: str
    since: NotRequired[Moment | None]


class Condition(TypedDict):
    """What is thought of a thing in one respect."""

    type: str
    status: Status
    reason: str
    message: str
    generation: int
    since: Moment | None
    reasonSince: Moment | None


class Counts(TypedDict):
    """Resources of a region by their state."""

    total: int
    ready: int
    notReady: int
    unknown: int


class Region(TypedDict):
    """One region: counts, what its plan does, conditions."""

    name: str
    resources: Counts
    plan: str | None
    steps: int
    waits: int
    holds: dict[str, int]
    pauses: list["Pause"]
    conditions: list[Condition]


class Regions(TypedDict):
    items: list[Region]
    now: Moment | None


class Resource(TypedDict):
    """One line of a list."""

    kind: str
    name: str
    region: str
    driver: str
    backend: str
    generation: int
    rank: int
    owner: RefText | None
    ready: Ready
    state: Doing
    pause: "Pause | None"
    observedAt: Moment | None


Resources = TypedDict(
    "Resources",
    {"items": list[Resource], "continue": str | None, "now": Moment | None},
)


class Orphan(Resource):
    """Something that exists though no document names it any more."""

    retired: bool


class Orphans(TypedDict):
    items: list[Orphan]
    now: Moment | None


class Observation(TypedDict):
    """What was seen. `facts` null is "could not look"; empty is "looked, not there"."""

    at: Moment | None
    facts: Plain | None
    error: str | None


class Step(TypedDict):
    """One thing that is to be done."""

    id: str
    ref: RefText
    verb: str
    why: str
    args: Plain
    deadlineSeconds: float
    generation: int
    disrupts: list[RefText]
    destroys: list[RefText]
    after: list[str]


class Hold(TypedDict):
    """What is not done now, and why."""

    ref: RefText
    reason: str
    message: str
    blocker: RefText | None
    approval: str | None
    until: Moment | None
    steps: list[Step]


class Wait(TypedDict):
    """Where the world is at work and there is nothing to do but to look again."""

    ref: RefText
    reason: str
    message: str
    until: Moment | None


class Plan(TypedDict):
    """What is to be done in a region now, in order."""

    id: str
    region: str
    topology: str
    again: Moment | None
    pauses: Annotated[list["Pause"], msgspec.Meta(description="That hold something in the region.")]
    steps: list[Step]
    holds: list[Hold]
    waits: list[Wait]


class Plans(TypedDict):
    plans: list[Plan]


class Concerning(TypedDict):
    steps: list[Step]
    holds: list[Hold]
    waits: list[Wait]


class Event(TypedDict):
    """One line of history; `seq` grows and is never used twice."""

    seq: int
    at: Moment | None
    ref: RefText
    reason: str
    message: str
    plan: str | None


Events = TypedDict(
    "Events",
    {"items": list[Event], "continue": str | None, "now": Moment | None},
)


class Attempt(TypedDict):
    """The newest try at a step."""

    step: str
    verb: str
    at: Moment | None
    result: str
    reason: str | None
    message: str | None
    endedAt: Moment | None
    count: int
    notBefore: Moment | None


class Link(TypedDict):
    ref: RefText
    text: str


class Why(TypedDict):
    """What a thing does or waits for, down to the cause."""

    paragraph: str
    ready: bool
    chain: list[Link]
    cause: RefText | None
    beside: list[RefText]
    advice: str | None


class Neighbour(TypedDict):
    relation: Literal["needs", "neededBy"]
    ref: RefText
    why: str | None
    ready: Ready
    state: Doing


class Limit(TypedDict):
    """How long a thing may stay in a state, and what to do after that."""

    state: str
    withinSeconds: float
    action: str


class Thing(Resource):
    """Everything about one resource."""

    now: Moment | None
    orphan: bool
    retired: bool
    why: Why
    desired: Plain
    observed: Observation | None
    conditions: list[Condition]
    steps: list[Step]
    holds: list[Hold]
    waits: list[Wait]
    attempt: Attempt | None
    events: list[Event]
    needs: list[RefText]
    neededBy: list[RefText]
    neighbours: list[Neighbour]
    limits: list[Limit]
    domains: list[str]


class Said(TypedDict):
    """The one line of the plan about a thing."""

    state: Literal["held", "waiting", "step"]
    reason: str
    message: str
    blocker: RefText | None


class Node(TypedDict):
    """`current`: it was judged as it is asked for now, and since the daemon started."""

    id: RefText
    kind: str
    name: str
    rank: int
    owner: RefText | None
    ready: Ready
    current: bool
    plan: Said | None
    pause: "Pause | None"


class Box(TypedDict):
    """A document with all that was compiled from it, as one."""

    id: RefText
    kind: str
    name: str
    role: str | None
    version: str | None
    zones: list[str]
    ready: Ready
    state: Doing
    plan: Said | None
    total: int
    states: dict[str, int]


class Arrow(TypedDict):
    """Something of the source needs something of the target; `direct`: the documents themselves."""

    source: RefText
    target: RefText
    direct: bool


class Picture(TypedDict):
    region: str
    digest: str
    boxes: list[Box]
    arrows: list[Arrow]
    now: Moment | None


class Hit(TypedDict):
    kind: str
    name: str
    region: str
    ready: Ready
    state: Doing


class Hits(TypedDict):
    """The best first."""

    items: list[Hit]


class Edge(TypedDict):
    """Reads as a sentence: source kind target."""

    source: RefText
    kind: Literal["needs", "feeds", "hosts"]
    target: RefText


class Topology(TypedDict):
    """A region as a graph."""

    region: str
    digest: str
    now: Moment | None
    nodes: list[Node]
    edges: list[Edge]


class KindCount(TypedDict):
    kind: str
    resources: int


class Kinds(TypedDict):
    items: list[KindCount]


class User(TypedDict):
    who: str
    version: int | str | None
    proof: str


class Credential(TypedDict):
    """What there is of a credential; never its value."""

    name: str
    region: str
    state: str
    madeBy: str
    where: list[str]
    how: str
    rotateSeconds: float | None
    version: int | str | None
    madeAt: Moment | None
    ageSeconds: float | None
    nextRotation: Moment | None
    expires: Moment | None
    olderVersions: list[int]
    usedBy: list[User]
    users: int
    stillOld: list[str]


class Credentials(TypedDict):
    items: list[Credential]
    now: Moment | None


class Documents(TypedDict):
    items: list[Plain]


class Pause(TypedDict):
    scope: str
    who: str
    reason: str
    since: Moment | None


class Paused(TypedDict):
    pause: Pause


class Resumed(TypedDict):
    resumed: str


class Decided(TypedDict):
    """`about`: what waited for it."""

    id: str
    decision: Literal["approve", "reject"]
    about: list[RefText]


class Retired(TypedDict):
    """`going`: in the order of their going."""

    ref: RefText
    id: Annotated[str, msgspec.Meta(description="Of just these things; agree to them by it.")]
    going: list[RefText]
    dryRun: bool


class FieldChange(TypedDict):
    path: str
    old: Any
    new: Any


class Changed(TypedDict):
    ref: RefText
    effect: str
    nodes: int
    fields: list[FieldChange]
    notes: list[str]
    refusals: list[str]


class Change(TypedDict):
    """What becomes different."""

    added: list[RefText]
    changed: list[Changed]
    removed: list[RefText]
    guard: list[str]
    consent: bool


class Wave(Concerning):
    number: int


class OwnedDocument(TypedDict):
    document: str
    file: str


class Consent(TypedDict):
    id: str
    why: str


class Draft(TypedDict):
    """A plan for documents that were sent."""

    id: str
    topology: str
    documents: list[str]
    fresh: list[str]
    pruned: list[str]
    owned: list[OwnedDocument]
    change: Change
    text: list[str]
    waves: list[Wave]
    consent: Consent | None


class Applied(TypedDict):
    """`changed`: whether anything becomes different in the fleet."""

    plan: str
    documents: list[str]
    pruned: list[str]
    resources: list[RefText]
    changed: bool


class Caller(TypedDict):
    """Who asks. `regions` null: all of them. `csrf`: what a browser's session sends with a write,
    in X-CSRF-Token."""

    name: str
    role: str
    regions: list[str] | None
    how: str
    csrf: str | None
