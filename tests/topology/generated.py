"""Fleets drawn by hypothesis: whole regions with any number of clusters, clouds and pools."""

from hypothesis import strategies as st

from tests.topology.fleets import Item, cloud, cluster, pool, region


@st.composite
def fleets(draw: st.DrawFn) -> list[Item]:
    """One to three regions. Each has a management cluster and any number of clouds, whose storage
    may be shared, stretched or missing; some clusters belong to no cloud."""
    items: list[Item] = []
    for name in draw(st.lists(st.sampled_from(["r1", "r2", "r3"]), min_size=1, unique=True)):
        items += _region(draw, name)
    return items


def _region(draw: st.DrawFn, name: str) -> list[Item]:
    net = int(name[1:])
    items = [region(name)]
    pools = [f"{name}-p{number}" for number in range(draw(st.integers(1, 3)))]
    items += [
        pool(one, draw(st.integers(1, 6)), net=net * 10 + number, region=name)
        for number, one in enumerate(pools)
    ]

    def add(cluster_name: str, role: str, **spec: object) -> str:
        items.append(cluster(cluster_name, role, draw(st.sampled_from(pools)), region=name, **spec))
        return cluster_name

    add(f"{name}-mgmt", "management")
    storage: list[str] = []
    for number in range(draw(st.integers(0, 2))):
        stretched: dict[str, object] = {}
        if draw(st.booleans()):
            arbiter = add(f"{name}-arb{number}", "arbiter")
            stretched["ceph"] = {"stretch": {"zones": ["a", "b"], "arbiter": arbiter}}
        storage.append(add(f"{name}-st{number}", "storage", **stretched))
    for number in range(draw(st.integers(0, 3))):
        control = add(f"{name}-cp{number}", "control-plane")
        hosts = [
            add(f"{name}-hv{number}{host}", "hypervisor") for host in range(draw(st.integers(1, 2)))
        ]
        if draw(st.booleans()):
            used = draw(st.lists(st.sampled_from(storage), unique=True)) if storage else []
            items.append(
                cloud(
                    f"{name}-cloud{number}",
                    region=name,
                    controlPlane=control,
                    hypervisors=hosts,
                    storage=used,
                )
            )
    return items
