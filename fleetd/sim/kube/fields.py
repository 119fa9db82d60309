"""
Field sets: which places of an object a manager owns, in the form of `fieldsV1`.

A set is a tree: `{"f:spec": {"f:replicas": {}}}` holds one place. An empty node is a place that is
held; a node with children is held itself only if it has a child `"."`. None is the empty set.
Trees are never changed, only made anew, for they live in stored objects.

A comparison descends only where values differ, so a write costs what it changes, not what the
object weighs.
"""

from collections.abc import Callable, Iterator
from typing import Any

from fleetd.sim.kube.definitions import PLAIN, Shape
from fleetd.sim.kube.values import Obj, decode, encode, is_list, is_map

Tree = dict[str, Any]
_SELF = "."
_KEY_DEFAULTS = {"protocol": "TCP"}


def item_key(item: Any, shape: Shape) -> str:  # noqa: ANN401 - any JSON value
    """The name of a list item: `k:{"name":"a"}` or, in a set, `v:"a"`."""
    if shape.keys and is_map(item):
        named: Obj = {key: item.get(key, _KEY_DEFAULTS.get(key)) for key in sorted(shape.keys)}
        return "k:" + encode(named).decode()
    return "v:" + encode(item).decode()


def item_shape(shape: Shape) -> Shape:
    """An item has the children of its list."""
    if not shape.children:
        return PLAIN
    return Shape(children=shape.children)


def owned(value: Any, shape: Shape) -> Tree:  # noqa: ANN401
    """The set of an applied configuration: its leaves, its empty maps, its list items."""
    if is_map(value) and value and not shape.atomic:
        return {f"f:{name}": owned(inner, shape.child(name)) for name, inner in value.items()}
    if is_list(value) and value and shape.keys is not None:
        inner = item_shape(shape)
        return {item_key(item, shape): _with_self(owned(item, inner)) for item in value}
    return {}


def whole(value: Any, shape: Shape) -> Tree:  # noqa: ANN401
    """All places in a value and the value itself."""
    if is_map(value) and value and not shape.atomic:
        return {
            _SELF: {},
            **{f"f:{name}": whole(inner, shape.child(name)) for name, inner in value.items()},
        }
    if is_list(value) and value and shape.keys is not None:
        inner = item_shape(shape)
        return {_SELF: {}, **{item_key(item, shape): whole(item, inner) for item in value}}
    return {}


def _with_self(tree: Tree) -> Tree:
    return {_SELF: {}, **tree} if tree else tree


def compare(old: Any, new: Any, shape: Shape) -> tuple[Tree | None, Tree | None]:  # noqa: ANN401
    """What is changed or added in `new`, and what of `old` is not there any more."""
    if old == new:
        return None, None
    if is_map(old) and is_map(new) and not shape.atomic:
        return _compare_named(old, new, shape.child, "f:")
    if is_list(old) and is_list(new) and shape.keys is not None:
        inner = item_shape(shape)
        return _compare_named(by_key(old, shape), by_key(new, shape), lambda _key: inner)
    removed = whole(old, shape) if is_map(old) or is_list(old) else None
    return {}, removed or None


def by_key(items: list[Any], shape: Shape) -> Obj:
    return {item_key(item, shape): item for item in items}


def _compare_named(
    old: Obj, new: Obj, shape: Callable[[str], Shape], mark: str = ""
) -> tuple[Tree | None, Tree | None]:
    changed: Tree = {}
    removed: Tree = {}
    for name, value in new.items():
        if name not in old:
            changed[mark + name] = whole(value, shape(name))
        elif old[name] != value:
            more, less = compare(old[name], value, shape(name))
            if more is not None:
                changed[mark + name] = more
            if less is not None:
                removed[mark + name] = less
    for name, value in old.items():
        if name not in new:
            removed[mark + name] = whole(value, shape(name))
    return changed or None, removed or None


def held(tree: Tree) -> bool:
    return not tree or _SELF in tree


def _made(*, itself: bool, children: Tree) -> Tree | None:
    if not children:
        return {} if itself else None
    return {_SELF: {}, **children} if itself else children


def _children(tree: Tree) -> Iterator[tuple[str, Tree]]:
    return ((key, child) for key, child in tree.items() if key != _SELF)


def union(one: Tree | None, other: Tree | None) -> Tree | None:
    if one is None or one is other:
        return other
    if other is None:
        return one
    children: Tree = dict(_children(one))
    for key, child in _children(other):
        children[key] = union(children[key], child) if key in children else child
    return _made(itself=held(one) or held(other), children=children)


def intersection(one: Tree | None, other: Tree | None) -> Tree | None:
    if one is None or other is None:
        return None
    children: Tree = {}
    for key, child in _children(one):
        if key in other:
            both = intersection(child, other[key])
            if both is not None:
                children[key] = both
    return _made(itself=held(one) and held(other), children=children)


def difference(one: Tree | None, other: Tree | None) -> Tree | None:
    """What is in `one` and not in `other`."""
    if one is None or other is None:
        return one
    children: Tree = {}
    for key, child in _children(one):
        left = difference(child, other.get(key))
        if left is not None:
            children[key] = left
    return _made(itself=held(one) and not held(other), children=children)


def paths(tree: Tree, prefix: str = "") -> Iterator[str]:
    """The held places, as in messages: `.spec.workers[name="a"].maximum`."""
    if held(tree):
        yield prefix
    for key, child in _children(tree):
        yield from paths(child, prefix + _step(key))


def _step(key: str) -> str:
    mark, _, rest = key.partition(":")
    if mark == "f":
        return f".{rest}"
    if mark == "k":
        from_json: Obj = decode(rest.encode())
        said = ",".join(f"{name}={encode(value).decode()}" for name, value in from_json.items())
        return f"[{said}]"
    return f"[={rest}]"
