"""
What an API server must know of a kind to serve it.

Data only. A built-in kind, a custom resource and a kind of an aggregated API are all a
`Definition`; where a kind has habits of its own (admission, subresources), its controller brings
them through `Cluster.admit` and `Cluster.subresource`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from fleetd.sim.kube.values import GK, Obj, is_map

ALL_VERBS = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`."""

    name: str
    path: str
    """Dotted; `status.conditions[Ready]` is the status of that condition."""
    type: str = "string"
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Shape:
    """How apply sees a place in an object: which lists merge, which maps do not."""

    keys: tuple[str, ...] | None = None
    """Of a list: merged item by item, by these fields. Empty: a set of plain values."""
    atomic: bool = False
    """Of a map: belongs to one manager as a whole."""
    children: Mapping[str, "Shape"] = field(default_factory=dict[str, "Shape"])
    anything: "Shape | None" = None
    """Of the values of a map with free keys."""

    def child(self, name: str) -> "Shape":
        return self.children.get(name) or self.anything or PLAIN


PLAIN = Shape()


class Scale(NamedTuple):
    """Dotted paths."""

    spec: str = "spec.replicas"
    status: str = "status.replicas"
    selector: str = "spec.selector"
    """To a LabelSelector, or to one as text."""


_METADATA = Shape(children={"finalizers": Shape(keys=()), "ownerReferences": Shape(keys=("uid",))})


@dataclass(frozen=True, kw_only=True)
class Definition:
    group: str
    kind: str
    plural: str
    versions: tuple[str, ...] = ("v1",)
    """The first is preferred, and the one objects are kept in. Others differ in name only."""
    namespaced: bool = True
    status: bool = True
    """Whether there is a status subresource."""
    keeps_status: bool = False
    """Whether a status given at creation counts, as it does for a Node."""
    generation: bool | None = None
    """Whether `metadata.generation` is kept; None: where there is a status subresource."""
    bumps: Callable[[Obj, Obj], bool] | None = None
    """Old and new to whether the generation rises; None: if anything but metadata and status
    differs."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Lists that apply merges: dotted path to the fields that name an item; no fields: a set.
    Items have no step of their own in a path: `spec.containers.ports`."""
    atomic: frozenset[str] = frozenset()
    """Maps that apply treats as one value."""
    subresources: tuple[str, ...] = ()
    """Beside status; what they do is said with `Cluster.subresource`."""
    immutable: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    selectable: tuple[str, ...] = ()
    """Paths for field selectors, beside name and namespace."""
    verbs: tuple[str, ...] = ALL_VERBS
    unconditional: bool = False
    """Whether PUT may come without a resourceVersion, as for most built-in kinds."""
    typed: bool = False
    """Whether the server knows the kind in Go: lists leave out kind and apiVersion of their items,
    and strategic merge patches are taken. True for built-in kinds and aggregated APIs."""
    free_names: bool = False
    """Whether names may be other than DNS names, as those of roles are."""
    schema: Mapping[str, Any] | None = None
    """OpenAPI. Objects are pruned, defaulted and validated by it; None: anything goes."""
    decodes: Mapping[str, Any] | None = None
    """A schema of what the server itself reads; what does not fit cannot be decoded (400)."""
    known: Mapping[str, Any] | None = None
    """The fields of a built-in kind and their types: what is sent is decoded by it."""
    scale: Scale | None = None
    """Where its scale subresource reads and writes; None: it has none."""
    shape_of: Shape | None = None
    """Instead of `lists` and `atomic`, where a schema said it."""

    @property
    def gk(self) -> GK:
        return self.group, self.kind

    @property
    def version(self) -> str:
        return self.versions[0]

    @cached_property
    def resource(self) -> str:
        """As in messages: `shoots.core.gardener.cloud`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str = "") -> str:
        version = version or self.version
        return f"{self.group}/{version}" if self.group else version

    @cached_property
    def counts(self) -> bool:
        """Whether objects have a generation."""
        return self.status if self.generation is None else self.generation

    @cached_property
    def shape(self) -> Shape:
        if self.shape_of is not None:
            tree = dict(self.shape_of.children)
            tree["metadata"] = _METADATA
            return Shape(children=tree)
        lists = {path: keys for path, keys in self.lists.items() if path}
        made = _shape("", lists, self.atomic)
        return Shape(children={"metadata": _METADATA, **made.children})


def _shape(path: str, lists: Mapping[str, tuple[str, ...]], atomic: frozenset[str]) -> Shape:
    prefix = f"{path}." if path else ""
    names = {
        rest[len(prefix) :].split(".")[0] for rest in (*lists, *atomic) if rest.startswith(prefix)
    }
    return Shape(
        keys=lists.get(path),
        atomic=path in atomic,
        children={name: _shape(prefix + name, lists, atomic) for name in sorted(names)},
    )


def shape_of_schema(schema: Mapping[str, Any]) -> Shape:
    """The same, read from the OpenAPI schema of a custom resource."""
    keys: tuple[str, ...] | None = None
    children: dict[str, Shape] = {}
    anything: Shape | None = None
    if schema.get("type") == "array":
        kind = schema.get("x-kubernetes-list-type", "atomic")
        if kind == "map":
            keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
            children = dict(shape_of_schema(schema.get("items") or {}).children)
        elif kind == "set":
            keys = ()
    else:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        children = {name: shape_of_schema(inner) for name, inner in properties.items()}
        more = schema.get("additionalProperties")
        if is_map(more):
            anything = shape_of_schema(more)
    return Shape(
        keys=keys,
        atomic=schema.get("x-kubernetes-map-type") == "atomic",
        children=children,
        anything=anything,
    )
