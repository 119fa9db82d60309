"""
Something that stands in for a required field that is missing or wrong, so that the rest of a
refused document can be looked at. It fits its model and leads nowhere: no document has its name.
"""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from topology.documents import base, fields

NOWHERE = "no-such-thing"
_TEXTS: Mapping[str, str] = {
    "apiVersion": base.API_VERSION,
    "url": "https://no-such-thing.example",
    "env": "NO_SUCH_THING",
    "release": "2025.1",
    "version": "1.33.4",
    "bmc": "192.0.2.1",
    "first": "192.0.2.1",
    "last": "192.0.2.1",
    "every": "2d",
    "overlap": "1d",
}
"""Where a name would not do, by the field."""


def of(model: type[BaseModel], path: Sequence[str | int]) -> object:
    """A value for the field that a path leads to."""
    found = fields.at(model, path)
    return _value(str(path[-1]), found) if found is not None else NOWHERE


def _value(name: str, field: FieldInfo) -> object:
    inner = fields.model_in(field.annotation)
    options = fields.choices(field.annotation)
    one: object
    if inner is not None:
        one = _whole(inner)
    elif options:
        one = options[0]
    elif fields.bare(field.annotation) is int:
        one = 1
    else:
        one = _TEXTS.get(name, NOWHERE)
    return [one] if fields.is_list(field.annotation) else one


def _whole(model: type[BaseModel]) -> dict[str, object]:
    needed = {name: field for name, field in fields.of(model).items() if field.is_required()}
    if model is base.Access:
        # None of its fields is required, and one of them is.
        needed = {"env": fields.of(model)["env"]}
    return {name: _value(name, field) for name, field in needed.items()}
