"""
The three patches that are not apply: merge, JSON patch, and strategic merge.

Pure: an object and a patch go in, a new object comes out. Strategic merge here is merge patch
that also merges the lists a `Definition` names, item by item, and knows `$patch: delete`,
`$patch: replace`, `$deleteFromPrimitiveList`, `$setElementOrder` and `$retainKeys`; that is what
kubectl sends.
"""

from typing import Any

from fleetd.sim.kube import fields, refusal
from fleetd.sim.kube.definitions import Shape
from fleetd.sim.kube.values import Obj, is_list, is_map


def merge(value: Any, patch: Any) -> Any:  # noqa: ANN401 - JSON values
    """RFC 7386."""
    if not is_map(patch):
        return patch
    made: Obj = dict(value) if is_map(value) else {}
    for name, change in patch.items():
        if change is None:
            made.pop(name, None)
        else:
            made[name] = merge(made.get(name), change)
    return made


def strategic(value: Any, patch: Any, shape: Shape) -> Any:  # noqa: ANN401
    if is_map(patch):
        return _strategic_map(value, patch, shape)
    if is_list(patch) and shape.keys is not None:
        old = value if is_list(value) else []
        return _strategic_list(old, patch, shape)
    return patch


def _strategic_map(value: Any, patch: Obj, shape: Shape) -> Obj:  # noqa: ANN401
    if patch.get("$patch") == "replace":
        return {name: inner for name, inner in patch.items() if name != "$patch"}
    made: Obj = dict(value) if is_map(value) else {}
    if "$retainKeys" in patch:
        made = {name: inner for name, inner in made.items() if name in patch["$retainKeys"]}
    for name, change in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            target = name.partition("/")[2]
            made[target] = [item for item in made.get(target, []) if item not in change]
        elif name.startswith("$"):
            continue
        elif change is None:
            made.pop(name, None)
        else:
            made[name] = strategic(made.get(name), change, shape.child(name))
    return made


def _strategic_list(old: list[Any], patch: list[Any], shape: Shape) -> list[Any]:
    inner = fields.item_shape(shape)
    items = fields.by_key(old, shape)
    for key, change in fields.by_key(patch, shape).items():
        if is_map(change) and "$patch" in change:
            if change["$patch"] == "delete":
                items.pop(key, None)
            continue
        items[key] = strategic(items.get(key), change, inner)
    return list(items.values())


def json_patch(value: Obj, operations: list[Obj]) -> Obj:
    """RFC 6902, on a copy. Raises `Refused` 422 for what does not fit the object."""
    from_here: Any = value
    for operation in operations:
        from_here = _operate(from_here, operation)
    return from_here


def _operate(root: Any, operation: Obj) -> Any:  # noqa: ANN401
    path = _steps(operation.get("path"))
    match operation.get("op"):
        case "add":
            return _put(root, path, operation.get("value"), insert=True)
        case "replace":
            _get(root, path)
            return _put(root, path, operation.get("value"), insert=False)
        case "remove":
            return _remove(root, path)
        case "test":
            if _get(root, path) != operation.get("value"):
                raise _unfit(f"testing path {operation['path']} value failed")
            return root
        case "move":
            start = _steps(operation.get("from"))
            moved = _get(root, start)
            return _put(_remove(root, start), path, moved, insert=True)
        case "copy":
            return _put(root, path, _get(root, _steps(operation.get("from"))), insert=True)
        case other:
            raise _unfit(f"Unexpected kind: {other}")


def _steps(pointer: object) -> list[str]:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise _unfit("a path is missing or does not start with /")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _get(root: Any, path: list[str]) -> Any:  # noqa: ANN401
    for step in path:
        root = _child(root, step)
    return root


def _child(value: Any, step: str) -> Any:  # noqa: ANN401
    if is_map(value) and step in value:
        return value[step]
    if is_list(value):
        items = value
        if step.isdecimal() and int(step) < len(items):
            return items[int(step)]
    raise _unfit(f"the server rejected our request due to an error in our request: no {step!r}")


def _put(root: Any, path: list[str], value: Any, *, insert: bool) -> Any:  # noqa: ANN401
    if not path:
        return value
    step, *rest = path
    if rest:
        inner = _put(_child(root, step), rest, value, insert=insert)
        return _with(root, step, inner)
    if is_list(root) and insert:
        items = list(root)
        place = len(items) if step == "-" else _index(step, len(items))
        items.insert(place, value)
        return items
    return _with(root, step, value)


def _with(holder: Any, step: str, value: Any) -> Any:  # noqa: ANN401
    if is_list(holder):
        items = list(holder)
        items[_index(step, len(items) - 1)] = value
        return items
    if is_map(holder):
        return {**holder, step: value}
    raise _unfit(f"nothing can be put at {step!r}")


def _remove(root: Any, path: list[str]) -> Any:  # noqa: ANN401
    if not path:
        raise _unfit("the whole object cannot be removed")
    step, *rest = path
    inner = _child(root, step)
    if rest:
        return _with(root, step, _remove(inner, rest))
    if is_list(root):
        items = list(root)
        del items[int(step)]
        return items
    return {name: value for name, value in root.items() if name != step}


def _index(step: str, last: int) -> int:
    if not step.isdecimal() or int(step) > last:
        raise _unfit(f"index out of range: {step!r}")
    return int(step)


def _unfit(message: str) -> refusal.Refused:
    return refusal.Refused(422, "Invalid", message)
