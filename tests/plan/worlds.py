"""Random fleets, what was seen of them, policies, and edits to all of it, for hypothesis."""

from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from fleetd.plan.planner import Planner
from fleetd.plan.policy import Budgets, Pause, Policy, RegionPolicy, mass_consent
from fleetd.plan.windows import Freeze, Window
from fleetd.vocabulary import Done, Ending, Failed, Lost, Truth, Waiting
from tests.plan import fleets
from tests.plan.fleets import NOW, World, thing
from topology.resource import Ref, Resource, Topology

REGIONS = ("eu-1", "eu-2")
KINDS = ("server", "server", "server", "cluster", "agent")
VERBS = ("fix", "reboot", "wipe", "drop")
REASONS = ("Broken", "Progressing", "Ready")
MINUTES = st.integers(-12, 12).map(lambda count: timedelta(minutes=count))
ENDINGS: tuple[Ending | None, ...] = (
    None,
    Done(),
    Waiting("Working", timedelta(minutes=1)),
    Waiting("", timedelta(minutes=1)),
    Failed("Timeout", "no answer", retry=True),
    Failed("Refused", "not allowed", retry=False),
    Lost("the daemon ended"),
)


@st.composite
def things(draw: st.DrawFn) -> list[Resource]:
    """Up to a dozen things in two regions; needs may cross regions, and a few are missing."""
    made: list[Resource] = []
    for number in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(KINDS))
        region = draw(st.sampled_from(REGIONS))
        known = [str(one.ref) for one in made]
        needs = set(draw(st.lists(st.sampled_from(known), max_size=2))) if known else set[str]()
        if draw(st.booleans()):
            needs.clear()
        if draw(st.integers(0, 39)) == 39:
            needs.add("server/nowhere")
        domains = {
            "server": [f"rack:{region}/r{number % 2}", f"zone:{region}/a", f"pool:{region}"],
            "cluster": [f"role:{region}/hypervisor"],
            "agent": [f"cluster:{region}"],
        }[kind]
        limits = draw(st.sampled_from([{}, {"*": 5}, {"Broken": 3}, {"Ready": 1, "*": 10}]))
        made.append(
            thing(
                f"{kind}/n{number:02}",
                *sorted(needs),
                domains=domains,
                region=region,
                limits={state: timedelta(minutes=within) for state, within in limits.items()},
                driver="none" if draw(st.integers(0, 19)) == 19 else "data",
                generation=draw(st.integers(1, 2)),
            )
        )
    return made


@st.composite
def policies(draw: st.DrawFn, topology: Topology) -> Policy:
    refs = sorted(topology.resources)
    scopes = ["all", "region:eu-1", "region:eu-2", "kind:server", *map(str, refs)]
    pauses = draw(st.lists(st.sampled_from(scopes), max_size=2, unique=True))
    if draw(st.integers(0, 2)):
        pauses = []
    approvals = [one.id for name in refs for one in steps_of(topology.resources[name], topology)]
    consent = [mass_consent(region, topology.digest) for region in REGIONS]
    return Policy(
        regions={region: draw(limits()) for region in REGIONS},
        pauses={scope: Pause(scope=scope, who="ada", why="moving", since=NOW) for scope in pauses},
        approvals=frozenset(approvals[:: draw(st.integers(1, 3))]),
        consents=frozenset(consent if draw(st.booleans()) else ()),
        stale_after=timedelta(minutes=draw(st.sampled_from([5, 5, 5, 9]))),
        mass_max=draw(st.sampled_from([0.1, 1.0, 1.0])),
    )


@st.composite
def limits(draw: st.DrawFn) -> RegionPolicy:
    """Windows, freezes and budgets of one region."""
    hours = draw(st.sampled_from([None, (11, 13), (11, 13), (12, 14)]))
    windows = (
        ()
        if hours is None
        else (
            Window(
                days=frozenset(range(7)),
                start=timedelta(hours=hours[0], minutes=3),
                end=timedelta(hours=hours[1]),
                zone=ZoneInfo("UTC"),
            ),
        )
    )
    frozen = draw(st.integers(0, 9)) == 9
    freezes = (Freeze(start=NOW, end=NOW + timedelta(minutes=4), reason="fair"),) if frozen else ()
    share = st.sampled_from([0, 1, 2, "10%", "50%", "100%"])
    return RegionPolicy(
        windows=windows,
        freezes=freezes,
        budgets=Budgets(rack=draw(share), zone=draw(share), pool=draw(share), clusters=draw(share)),
    )


def todo_of(verb: str, name: Ref, topology: Topology) -> dict[str, object]:
    servers = [str(one) for one in sorted(topology.resources) if one.kind == "server"]
    disrupts = {"reboot": [str(name)], "wipe": [str(name), *servers[:1]]}.get(verb, [])
    destroys = [str(name)] if verb in ("wipe", "drop") else []
    return fleets.todo(verb, disrupts=disrupts, destroys=destroys)


def steps_of(want: Resource, topology: Topology) -> list[fleets.Step]:
    """Every step its driver could propose."""
    todos = [todo_of(verb, want.ref, topology) for verb in VERBS]
    return [fleets.step(want, "create"), *(fleets.step(want, **todo) for todo in todos)]  # pyright: ignore[reportArgumentType]


@st.composite
def sights(draw: st.DrawFn, world: World, name: Ref | None = None) -> Ref:
    """Somebody looked at something, and maybe judged it."""
    if name is None:
        name = draw(st.sampled_from(sorted(world.view.topology.resources)))
    at = NOW - timedelta(minutes=draw(st.sampled_from([0, 0, 0, 1, 2, 4, 6, -3])))
    how = draw(
        st.sampled_from(["up", "up", "todo", "todo", "todo", "absent", "blind", "bad", "new"])
    )
    verbs = draw(st.lists(st.sampled_from(VERBS), min_size=1, max_size=2, unique=True))
    todos = (
        [todo_of(verb, name, world.view.topology) for verb in verbs]
        if how in ("todo", "bad")
        else []
    )
    facts: dict[str, object] | None = {"there": 1, "todo": todos}
    if draw(st.integers(0, 9)) == 9:
        facts["fault"] = draw(st.sampled_from(sorted(fleets.FAULTS)))
    if how in ("absent", "blind"):
        facts = {} if how == "absent" else None
    world.saw(str(name), facts, at=at, error="no route" if how == "blind" else "")
    if how == "new":
        world.view.ready.pop(name, None)
        return name
    good = how in ("up", "todo")
    truth = Truth.TRUE if good else draw(st.sampled_from([Truth.FALSE, Truth.UNKNOWN]))
    world.judged(str(name), truth, draw(st.sampled_from(REASONS)), since=NOW + draw(MINUTES))
    if draw(st.integers(0, 19)) == 19:
        world.view.ready[name] = replace(world.view.ready[name], generation=99)
    return name


@st.composite
def tries(draw: st.DrawFn, world: World) -> Ref:
    """A step of something began or ended."""
    name = draw(st.sampled_from(sorted(world.view.topology.resources)))
    if draw(st.integers(0, 4)) == 0:
        world.view.attempts.pop(name, None)
        return name
    want = world.view.topology.resources[name]
    chosen = draw(st.sampled_from(steps_of(want, world.view.topology)))
    ending = draw(st.sampled_from(ENDINGS))
    at = NOW + draw(MINUTES)
    world.tried(
        str(name),
        chosen.id,
        ending,
        at=at,
        ended_at=None if ending is None else at + timedelta(minutes=draw(st.integers(0, 3))),
        not_before=draw(
            st.sampled_from([None, at + timedelta(minutes=2), at + timedelta(minutes=9)])
        ),
        count=draw(st.integers(1, 3)),
        disrupts=draw(st.sampled_from([None, chosen.disrupts | chosen.destroys])),
    )
    return name


@st.composite
def orphanings(draw: st.DrawFn, world: World) -> Ref:
    """Something lost its document, or got it back."""
    names = ["server/gone", "agent/gone", *map(str, world.view.topology.resources)]
    name = fleets.ref(draw(st.sampled_from(names)))
    if name in world.view.orphans:
        del world.view.orphans[name]
    else:
        region = draw(st.sampled_from(REGIONS))
        world.view.orphans[name] = thing(str(name), region=region)
    return name


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A fleet in the middle of its life."""
    world = World.of(*draw(things()))
    for name in world.view.topology.resources:
        if draw(st.integers(0, 19)) < 19:
            draw(sights(world, name))
    for _ in range(draw(st.integers(0, 4))):
        draw(tries(world))
    for _ in range(draw(st.integers(0, 2))):
        draw(orphanings(world))
    return world


@st.composite
def leave(draw: st.DrawFn, world: World, policy: Policy, keeper: Planner) -> Policy:
    """Approvals or consents were given or taken back, for some things or one region."""
    topology = world.view.topology
    refs = draw(st.lists(st.sampled_from(sorted(topology.resources)), max_size=3, unique=True))
    known = [one.id for ref in refs for one in steps_of(topology.resources[ref], topology)]
    ids = frozenset(draw(st.lists(st.sampled_from(known), max_size=3)) if known else ())
    regions = draw(st.lists(st.sampled_from(REGIONS), max_size=1))
    consents = frozenset(mass_consent(region, topology.digest) for region in regions)
    policy = replace(policy, approvals=policy.approvals ^ ids, consents=policy.consents ^ consents)
    keeper.allowed(policy, refs, regions)
    return policy


@st.composite
def burials(draw: st.DrawFn, world: World, keeper: Planner) -> bool:
    """One thing leaves the topology, and with it all that was known of it."""
    view = world.view
    if len(view.topology.resources) < 2:
        return False
    ref = draw(st.sampled_from(sorted(view.topology.resources)))
    left = {one: want for one, want in view.topology.resources.items() if one != ref}
    view.topology = replace(view.topology, resources=left)
    for known in (view.seen, view.ready, view.attempts, view.orphans):
        known.pop(ref, None)
    keeper.remove(view, ref)
    return True
