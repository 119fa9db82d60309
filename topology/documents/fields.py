"""
The fields of a model, seen from outside: by the name a user writes, along a path.

Reads pydantic's own tables; nothing is listed twice. Complaints, the reference page and the test
that every field has a description use it.
"""

import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from pydantic import BaseModel
from pydantic.fields import FieldInfo

Path = tuple[str | int, ...]


def of(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """The fields of a model by the names users write."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def at(model: type[BaseModel], path: Sequence[str | int]) -> FieldInfo | None:
    """The field a path leads to; for a member of a list or mapping, the field that holds it."""
    found: FieldInfo | None = None
    inner: type[BaseModel] | None = model
    for part in path:
        if isinstance(part, int) or inner is None:
            continue
        found = of(inner).get(part)
        if found is None:
            return None
        inner = model_in(found.annotation)
    return found


def model_at(model: type[BaseModel], path: Sequence[str | int]) -> type[BaseModel] | None:
    """The model of the mapping at a path, if it has one."""
    if not path:
        return model
    field = at(model, path)
    return model_in(field.annotation) if field is not None else None


def model_in(annotation: object) -> type[BaseModel] | None:
    """The model inside `Model`, `Model | None`, `list[Model]`, `Annotated[...]` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in typing.get_args(annotation):
        if (found := model_in(part)) is not None:
            return found
    return None


def everything(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Each field of the model and of all models in it, as (dotted path, field); `[]` marks a
    list."""
    for name, field in of(model).items():
        below = f"{path}.{name}" if path else name
        yield below, field
        inner = model_in(field.annotation)
        if inner is not None:
            yield from everything(inner, below + ("[]" if is_list(field.annotation) else ""))


def is_list(annotation: object) -> bool:
    annotation = bare(annotation)
    return annotation is list or typing.get_origin(annotation) is list


def is_choice(field: FieldInfo | None) -> bool:
    """Several types of single values, such as `int | str`: no path leads below it."""
    if field is None or model_in(field.annotation) is not None:
        return False
    return typing.get_origin(bare(field.annotation)) in {typing.Union, types.UnionType}


def bare(annotation: object) -> object:
    """Without `Annotated` and `| None`."""
    if typing.get_origin(annotation) is typing.Annotated:
        return bare(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        parts = [part for part in typing.get_args(annotation) if part is not type(None)]
        if len(parts) == 1:
            return bare(parts[0])
    return annotation


def choices(annotation: object) -> list[str]:
    """What may be written for an enum or literal; empty for everything else."""
    annotation = bare(annotation)
    if typing.get_origin(annotation) is list:
        return choices(typing.get_args(annotation)[0])
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(member.value) for member in annotation]
    if typing.get_origin(annotation) is typing.Literal:
        return [str(value) for value in typing.get_args(annotation)]
    return []
