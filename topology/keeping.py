"""
Where a credential lies: the places that the catalogue names, filled in for one thing.

Pure. What only the far side knows stays as it is written there: `<node>`, `<service>`.
"""

from collections.abc import Mapping
from typing import Any, cast

from topology import catalogue
from topology.catalogue import Made
from topology.resource import Backend, Resource


def where(made: Made, maker: Resource, *, several: bool = False) -> list[str]:
    """`openbao:infrastructure/kubeconfig-hv`, `secret:rook-ceph/rook-ceph-mon`."""
    places = (("openbao", made.path), ("secret", made.secret), ("in", made.document))
    return [f"{kind}:{_filled(text, maker, several=several)}" for kind, text in places if text]


def secret(made: Made, maker: Resource) -> tuple[str, str] | None:
    """Namespace and name of the Secret it lies in; None: in none, or one of many."""
    if made.secret is None:
        return None
    namespace, _, name = _filled(made.secret, maker, several=False).partition("/")
    return None if "<" in namespace + name else (namespace, name)


def _filled(text: str, maker: Resource, *, several: bool) -> str:
    spec, ref = maker.spec, maker.ref
    garden: Any = spec.get("garden")
    words = {
        "region": maker.region,
        "name": ref.name,
        "server": "<server>" if several else ref.name,
        "cluster": spec.get("cluster") or _cluster(maker),
        "cloud": spec.get("cloud") or (ref.name if ref.kind == "cloud" else None),
        "project": cast("Mapping[str, Any]", garden).get("project")
        if isinstance(garden, Mapping)
        else None,
    }
    return catalogue.fill(text, lambda word: str(words.get(word) or f"<{word}>"))


def _cluster(maker: Resource) -> str | None:
    if maker.ref.kind == "cluster":
        return maker.ref.name
    there = Backend.of(maker.backend)
    return there.name if there.kind == "cluster" else None
