"""What changed, how it happens, and what is refused."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topology import fleets, generated
from topology import diff
from topology.diff import Change, Changed
from topology.effects import Effect, Field
from topology.resource import EMPTY, Ref


def between(old: list[fleets.Item], new: list[fleets.Item]) -> Change:
    return diff.diff(fleets.topology(old), fleets.topology(new))


def entry(change: Change, kind: str, name: str) -> Changed:
    return next(one for one in change.changed if one.ref == Ref(kind, name))


def cluster_change(
    before: dict[str, Any], after: dict[str, Any], role: str = "hypervisor"
) -> Changed:
    """Change cluster hv (or st, for storage) of the small fleet from one spec to another."""
    name = "st" if role == "storage" else "hv"
    old = fleets.with_(fleets.small(), fleets.cluster(name, role, **before))
    new = fleets.with_(fleets.small(), fleets.cluster(name, role, **after))
    return entry(between(old, new), "cluster", name)


def worker(**fields: Any) -> dict[str, Any]:
    return {"name": "w", "pool": "general", "minimum": 1, "maximum": 3, **fields}


def test_equal_topologies_differ_in_nothing() -> None:
    """Nothing to say and nothing to consent to."""
    change = between(fleets.small(), fleets.small())

    assert change == Change()
    assert change.empty
    assert diff.show(change) == []


def test_a_first_fleet_is_all_added() -> None:
    """From nothing, everything is new and nothing needs consent."""
    topology = fleets.topology()

    change = diff.diff(EMPTY, topology)

    assert [one.ref for one in change.added] == list(topology.resources)
    assert not change.consent


def test_fields_go_by_name_and_path() -> None:
    """Workers are told apart by name; a missing value is None."""
    change = cluster_change({}, {"workers": [worker(maximum=4), worker(name="x")]})

    assert [field.path for field in change.fields] == ["workers[w].maximum", "workers[x]"]
    assert change.fields[0] == Field(path="workers[w].maximum", old=3, new=4)
    assert change.fields[1].old is None
    assert change.effect is Effect.IN_PLACE


def test_access_is_hidden() -> None:
    """Neither the old nor the new name of a secret is shown, at any depth."""
    old = fleets.with_(fleets.small(), fleets.pool("general", 12, access={"file": "hush-1"}))
    new = fleets.with_(fleets.small(), fleets.pool("general", 12, access={"env": "HUSH_2"}))
    adopted = fleets.cluster("hv", "hypervisor", workers=[], adopted={"access": {"env": "HUSH_3"}})

    change = between(old, fleets.with_(new, adopted))

    hidden = Field(path="access", old="(hidden)", new="(hidden)")
    assert hidden in entry(change, "server", "general-s0").fields
    assert entry(change, "cluster", "hv").effect is Effect.REPLACES
    assert "hush" not in repr([one.fields for one in change.changed]).lower()
    assert "hush" not in "\n".join(diff.show(change)).lower()


def test_another_machine_replaces_the_server() -> None:
    """A new BMC address or UUID is another machine; learning a UUID is not."""
    first = {"name": "s", "bmc": "192.0.2.1", "zone": "a"}
    uuid = "38947555-7742-3448-3784-823347823834"

    def effect(before: dict[str, Any], after: dict[str, Any]) -> Effect:
        old = [fleets.region(), fleets.pool("p", servers=[before])]
        new = [fleets.region(), fleets.pool("p", servers=[after])]
        return entry(between(old, new), "server", "s").effect

    assert effect(first, {**first, "bmc": "192.0.2.2"}) is Effect.REPLACES
    assert effect(first, {**first, "uuid": uuid}) is Effect.IN_PLACE
    assert effect({**first, "uuid": uuid}, {**first, "uuid": uuid[:-1] + "5"}) is Effect.REPLACES
    assert effect(first, {**first, "rack": "r9"}) is Effect.IN_PLACE


@pytest.mark.parametrize(
    ("before", "after", "effect", "nodes"),
    [
        ({"kubernetes": "1.33.4"}, {"kubernetes": "1.33.6"}, Effect.IN_PLACE, 0),
        ({"kubernetes": "1.33.4"}, {"kubernetes": "1.34.1"}, Effect.ROLLS, 3),
        (
            {"kubernetes": "1.33.4"},
            {"kubernetes": "1.34.1", "workers": [worker(kubernetes="1.33.4")]},
            Effect.IN_PLACE,
            0,
        ),
        (
            {},
            {"image": {"name": "gardenlinux", "version": "1877.5.0"}},
            Effect.ROLLS,
            3,
        ),
        (
            {"workers": [worker(updateStrategy="AutoInPlaceUpdate")]},
            {
                "image": {"name": "gardenlinux", "version": "1877.5.0"},
                "workers": [worker(updateStrategy="AutoInPlaceUpdate")],
            },
            Effect.IN_PLACE,
            3,
        ),
        (
            {"workers": [worker()]},
            {"workers": [worker(pool=None, machineType="big")]},
            Effect.ROLLS,
            3,
        ),
        ({"workers": [worker()]}, {"workers": [worker(maximum=1)]}, Effect.ROLLS, 2),
        ({"workers": [worker()]}, {"workers": [worker(zones=["a"])]}, Effect.ROLLS, 2),
        ({}, {"hypervisor": {"libvirt": "daemonset"}}, Effect.ROLLS, 0),
        ({"workers": [worker(), worker(name="x")]}, {"workers": [worker()]}, Effect.ROLLS, 3),
        ({}, {"failureTolerance": "node"}, Effect.IN_PLACE, 0),
        ({"failureTolerance": "node"}, {}, Effect.REPLACES, 0),
        ({}, {"networking": {"pods": "100.64.0.0/12"}}, Effect.REPLACES, 0),
        ({}, {"networking": {"nodes": "10.0.0.0/16"}}, Effect.IN_PLACE, 0),
        ({}, {"hypervisor": {"aggregates": ["gold"]}}, Effect.IN_PLACE, 0),
    ],
)
def test_how_a_cluster_changes(
    before: dict[str, Any], after: dict[str, Any], effect: Effect, nodes: int
) -> None:
    """In place, rolling so many nodes, or replacing the whole, as Gardener does it."""
    change = cluster_change(before, after)

    assert (change.effect, change.nodes) == (effect, nodes)


OTHER_ZONES = {"ceph": {"stretch": {"zones": ["a", "c"], "arbiter": "arb"}}}
STRETCH = {"ceph": {"stretch": {"zones": ["a", "b"], "arbiter": "arb"}}}


@pytest.mark.parametrize(
    ("before", "after", "role", "words"),
    [
        ({"kubernetes": "1.33.4"}, {"kubernetes": "1.33.2"}, "hypervisor", "refuses a downgrade"),
        ({"kubernetes": "1.32.4"}, {"kubernetes": "1.34.1"}, "hypervisor", "go to 1.33 first"),
        (
            {"networking": {"pods": "100.64.0.0/12"}},
            {"networking": {"pods": "100.80.0.0/12"}},
            "hypervisor",
            "networking.pods 100.64.0.0/12 -> 100.80.0.0/12: Gardener never changes",
        ),
        ({"failureTolerance": "node"}, {"failureTolerance": "zone"}, "hypervisor", "set once"),
        ({"failureTolerance": "node"}, {}, "hypervisor", "neither changed nor removed"),
        ({}, STRETCH, "storage", "from its first day"),
        (STRETCH, {}, "storage", "from its first day"),
        (STRETCH, OTHER_ZONES, "storage", "ceph.stretch.zones a, b -> a, c"),
        (
            {"workers": [worker()]},
            {"workers": [worker(updateStrategy="AutoInPlaceUpdate")]},
            "hypervisor",
            "make another pool",
        ),
        (
            {"workers": [worker(updateStrategy="ManualInPlaceUpdate")]},
            {
                "workers": [
                    worker(
                        updateStrategy="ManualInPlaceUpdate",
                        image={"name": "gardenlinux", "version": "1800.0.0"},
                    )
                ]
            },
            "hypervisor",
            "never goes back",
        ),
        (
            {"workers": [worker(updateStrategy="AutoInPlaceUpdate")]},
            {"workers": [worker(updateStrategy="AutoInPlaceUpdate", pool="other")]},
            "hypervisor",
            "workers[w].pool: a pool that updates in place keeps its machines",
        ),
        (
            {"kubernetes": "1.35.0", "workers": [worker(kubernetes="1.32.0")]},
            {"kubernetes": "1.35.0"},
            "hypervisor",
            "workers[w].kubernetes 1.32.0 -> 1.35.0: minors go one at a time",
        ),
    ],
)
def test_what_the_far_side_refuses_of_a_cluster(
    before: dict[str, Any], after: dict[str, Any], role: str, words: str
) -> None:
    """Each refusal is told before anybody tries, once, with the reason."""
    change = cluster_change(before, after, role)

    assert len(change.refusals) == 1
    assert words in change.refusals[0]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("2025.2", "2025.1", ["databases are migrated and never go back"]),
        ("2025.1", "2026.1", ["go to 2025.2 first"]),
        ("2025.2", "2026.1", []),
    ],
)
def test_releases_go_up_one_at_a_time(before: str, after: str, words: list[str]) -> None:
    """OpenStack is upgraded release by release and never back."""
    old = fleets.with_(fleets.small(), fleets.cloud(release=before))
    new = fleets.with_(fleets.small(), fleets.cloud(release=after))

    refusals = entry(between(old, new), "cloud", "prod").refusals

    assert len(refusals) == len(words)
    assert all(word in text for word, text in zip(words, refusals, strict=True))


def test_another_arbiter_is_a_change_in_place() -> None:
    """The monitor that breaks ties may move; the data stays where it is."""
    moved = {"ceph": {"stretch": {"zones": ["a", "b"], "arbiter": "arb2"}}}

    change = cluster_change(STRETCH, moved, "storage")

    assert (change.effect, change.refusals) == (Effect.IN_PLACE, ())


def test_copies_of_a_ceph_pool_change_in_place() -> None:
    """Ceph moves the data itself; only the pool and its cluster are named."""
    small: dict[str, Any] = {"ceph": {"pools": [{"name": "vms", "size": 3}]}}
    large: dict[str, Any] = {"ceph": {"pools": [{"name": "vms", "size": 4}]}}
    old = fleets.with_(fleets.small(), fleets.cluster("st", "storage", **small))
    new = fleets.with_(fleets.small(), fleets.cluster("st", "storage", **large))

    change = between(old, new)

    assert entry(change, "ceph-pool", "st.vms").fields == (Field(path="pool.size", old=3, new=4),)
    assert {one.effect for one in change.changed} == {Effect.IN_PLACE}
    assert [str(one.ref) for one in change.changed] == ["cluster/st", "ceph-pool/st.vms"]


def test_a_changed_order_is_a_change() -> None:
    """A catalogue that adds a need changes the thing, although its spec stays."""
    needy = fleets.component(
        "openbao",
        "cluster",
        "openbao",
        roles=["management"],
        needs=[("access", "same"), ("metal", "region")],
    )

    change = diff.diff(fleets.topology(), fleets.topology(None, needy))

    added = entry(change, "openbao", "mgmt").fields
    assert added == (Field(path="needs", old=None, new=["metal/eu-1"]),)


def test_removal_makes_orphans() -> None:
    """The text promises that nothing is deleted."""
    change = between(fleets.small(), fleets.without(fleets.small(), "Cloud", "prod"))

    assert {str(one.ref) for one in change.removed} == {
        "ceph-key/st.prod",
        "cloud/prod",
        "compute/hv",
        "controlplane/prod",
    }
    lines = [line for line in diff.show(change) if line.startswith("- ")]
    assert lines
    assert all("orphaned, and kept until you retire " in line for line in lines)


def test_ten_percent_of_servers_may_go_and_no_more() -> None:
    """One of ten is free, two of ten need consent, with the sum."""

    def sized(size: int) -> list[fleets.Item]:
        return [fleets.region(), fleets.pool("p", size)]

    few, many = between(sized(10), sized(9)), between(sized(10), sized(8))

    assert not few.consent
    assert many.consent
    assert str(many.guard[0]) == ("region eu-1: 2 of 10 servers (20 %) would go or be replaced")
    assert diff.show(many)[-1] == f"! {many.guard[0]}: needs your consent"


def test_a_region_is_guarded_by_itself() -> None:
    """Losing all servers of a small region is not hidden by a large one beside it."""
    big = [fleets.region("big"), fleets.pool("p1", 40, region="big")]
    lone = [fleets.region("lone"), fleets.pool("p2", 2, net=2, region="lone")]

    change = between([*big, *lone], [*big, lone[0]])

    assert [(total.region, total.servers_gone) for total in change.guard] == [("lone", 2)]
    assert change.consent


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_any_cluster_that_goes_needs_consent(how: str) -> None:
    """One cluster is enough."""
    new = fleets.without(fleets.small(), "Cluster", "mgmt")
    if how == "replaced":
        new.append(fleets.cluster("mgmt", "management", networking={"services": "100.0.0.0/16"}))

    change = between(fleets.small(), new)

    assert change.consent
    assert change.guard[0].clusters_gone == (Ref("cluster", "mgmt"),)
    assert "1 of 4 clusters (mgmt)" in str(change.guard[0])


def test_a_hundred_servers_are_one_line() -> None:
    """Servers of a pool that change alike are told together, added ones too."""
    one = [fleets.region(), fleets.pool("p", 100)]
    two = [fleets.region(), fleets.pool("p", 100, redfish={"port": 8443})]

    added = diff.show(diff.diff(EMPTY, fleets.topology(one)))
    changed = diff.show(between(one, two))

    assert "+ 100 servers of pool p: p-s0, p-s1, p-s10 ... p-s99" in added
    assert changed == [
        "~ serverpool/p: redfish.port 443 -> 8443 (in place)",
        (
            "~ 100 servers of pool p: p-s0, p-s1, p-s10 ... p-s99: "
            "redfish.port 443 -> 8443 (in place)"
        ),
    ]


def test_servers_with_values_of_their_own_are_one_line_too() -> None:
    """Where values differ, the field is named and the values are not."""
    moved = [
        {"name": f"p-s{n}", "bmc": f"192.0.7.{n + 1}", "zone": "ab"[n % 2], "rack": f"r{n}"}
        for n in range(20)
    ]
    one = [fleets.region(), fleets.pool("p", 20)]
    two = [fleets.region(), fleets.pool("p", servers=moved)]

    lines = [line for line in diff.show(between(one, two)) if line.startswith("~")]

    assert len(lines) == 1
    assert "bmc changes (replaces it: bmc is another machine under the same name)" in lines[0]


def test_an_upgrade_reads_as_a_sentence() -> None:
    """What, from where to where, and what it costs."""
    old = fleets.with_(fleets.small(), fleets.cluster("hv", "hypervisor", kubernetes="1.33.4"))
    new = fleets.with_(fleets.small(), fleets.cluster("hv", "hypervisor", kubernetes="1.34.1"))

    assert diff.show(between(old, new)) == [
        (
            "~ cluster/hv: kubernetes 1.33.4 -> 1.34.1 "
            "(rolls 3 nodes: the 3 nodes of pool w are replaced)"
        ),
        (
            "! region eu-1: 3 nodes would be drained, with 12 servers in all: "
            "a plan asks for consent above 10 %"
        ),
    ]


@settings(max_examples=30, deadline=None)
@given(generated.fleets(), generated.fleets())
def test_added_and_removed_mirror_each_other(
    one: list[fleets.Item], two: list[fleets.Item]
) -> None:
    """There and back: what one way adds the other removes, and both see the same fields."""
    first, second = fleets.topology(one), fleets.topology(two)

    there, back = diff.diff(first, second), diff.diff(second, first)

    assert {r.ref for r in there.added} == {r.ref for r in back.removed}
    assert {r.ref for r in there.removed} == {r.ref for r in back.added}
    assert {c.ref: [f.path for f in c.fields] for c in there.changed} == {
        c.ref: [f.path for f in c.fields] for c in back.changed
    }
    assert there.empty == (first.digest == second.digest)
    assert bool(diff.show(there)) is not there.empty


@settings(max_examples=30, deadline=None)
@given(generated.fleets())
def test_a_topology_does_not_differ_from_itself(items: list[fleets.Item]) -> None:
    """diff(a, a) is empty, for two compilations of the same documents too."""
    assert diff.diff(fleets.topology(items), fleets.topology(items)).empty


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.lists(st.integers()), max_size=5))
def test_fields_are_empty_only_for_equal_specs(spec: dict[str, Any]) -> None:
    """Any spec equals itself, and a spec with one more key differs in just that key."""
    assert diff.fields_of(spec, spec) == ()
    assert [one.path for one in diff.fields_of(spec, {**spec, "more": 1})] == ["more"]
