"""
Who makes which credential, and where it lies: checked over the whole catalogue.

Two rules a reader must know. A credential has one maker, under a name that is used once. And one
path in OpenBao holds one credential: the path of a component that stands in many places must say
which place is meant, or the second cloud would overwrite the passwords of the first.
"""

from collections.abc import Callable, Iterator, Mapping

from topology.catalogue import PLACEHOLDER, Component, ComponentSpec, Made, Scope
from topology.checks.spelling import Speller
from topology.documents.cluster import Role
from topology.yamlevents import Path

Say = Callable[[str, Path, str, str, str], None]
"""Component, place in it, code, what is wrong, what to do."""

_TELLS: Mapping[Scope, tuple[frozenset[str], ...]] = {
    Scope.CLUSTER: (frozenset({"cluster"}),),
    Scope.CLUSTER_DOCUMENT: (frozenset({"cluster"}),),
    Scope.CLOUD: (frozenset({"cloud"}), frozenset({"cluster"})),
    Scope.CLOUD_DOCUMENT: (frozenset({"cloud"}), frozenset({"cluster"})),
    Scope.CLOUD_HYPERVISOR: (frozenset({"cluster"}),),
    Scope.CLOUD_STORAGE: (frozenset({"cluster", "cloud"}),),
    Scope.CEPH_POOL: (frozenset({"cluster", "pool"}),),
    Scope.SERVER: (frozenset({"server"}),),
}
"""The words that tell instances of a scope in one region apart, any one set of them. A control
plane carries one cloud, so its cluster tells the cloud."""


def check(components: Mapping[str, Component], speller: Speller, say: Say) -> None:
    made: dict[str, str] = {}
    paths: dict[str, str] = {}
    for name, place, make in _made(components):
        if make.name in made:
            message = f"credential {make.name!r} is made by {made[make.name]} already"
            say(name, (*place, "name"), "credential-twice", message, "take another name")
        made.setdefault(make.name, name)
        if make.path is None and make.secret is None and make.document is None:
            say(
                name,
                (*place, "name"),
                "credential-nowhere",
                "it does not say where the credential lies",
                "add path (in OpenBao), secret (namespace/name) or document (in words)",
            )
        if make.path is not None:
            _path(components[name].spec, (name, place, make.path), paths, say)
            paths.setdefault(make.path, make.name)
    for name, component in components.items():
        for index, use in enumerate(component.spec.uses):
            if use.name not in made:
                say(
                    name,
                    ("spec", "uses", index, "name"),
                    "credential-unknown",
                    f"nobody makes a credential {use.name!r}",
                    speller.hint(use.name, made, "add it to the makes of its maker"),
                )


def _made(components: Mapping[str, Component]) -> Iterator[tuple[str, Path, Made]]:
    for name in sorted(components):
        for index, make in enumerate(components[name].spec.makes):
            yield name, ("spec", "makes", index), make


def _path(
    spec: ComponentSpec, found: tuple[str, Path, str], paths: Mapping[str, str], say: Say
) -> None:
    name, place, path = found
    where: Path = (*place, "path")
    if path in paths:
        message = f"credential {paths[path]!r} lies at {path} already"
        say(name, where, "credential-path-taken", message, "take another path")
    if not _apart(spec, frozenset(PLACEHOLDER.findall(path))):
        wanted = " and ".join(f"{{{word}}}" for word in sorted(_TELLS[spec.scope][0]))
        say(
            name,
            where,
            "credential-path-shared",
            f"all instances of scope {spec.scope} would write to this one path",
            f"put {wanted} into it",
        )


def _apart(spec: ComponentSpec, words: frozenset[str]) -> bool:
    """Whether a path with these placeholders is another one for each instance."""
    alone = spec.scope is Scope.CLUSTER and spec.roles == [Role.MANAGEMENT]
    if alone or spec.scope not in _TELLS or "name" in words:
        return True
    return any(needed <= words for needed in _TELLS[spec.scope])
