"""
The reference page of all documents, made from their JSON schemas.

One table a kind: field, type, default, meaning. Where something secret is named, the table points
to one section instead of listing the same four ways each time.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from topology.documents import base

Schema = dict[str, Any]

_SECTION = "Access"
_PATTERNS = {
    base.DURATION_PATTERN: "duration",
    f"^{base.NAME.pattern}$": "name",
    f"^{base.OBJECT.pattern}$": "name with dots",
    f"^{base.TYPE.pattern}$": "type",
}
_TYPES = {"integer": "whole number", "boolean": "`true`, `false`"}
_HEAD = """# Documents

Generated from the models in `topology/documents` by `python -m topology.schema`; do not edit.

Every document has `apiVersion: fleet.c5c3.io/v1alpha1`, a `kind`, a `metadata.name` and a `spec`.
Files are `*.yaml`, with several documents per file if you like. For completion and checks in an
editor, put this on the first line (with the path to your copy):

```yaml
# yaml-language-server: $schema=topology/schema/fleet.json
```

A *name* is made of lower-case letters, digits and `-`, at most 63. A *name with dots* is the name
of an object in Kubernetes, which may be longer and have dots. A *type* is what a CloudProfile calls
a machine or an image: letters, digits, `-`, `_` and `.`. A *duration* is written like
`45s`, `30m`, `2h`, `1h30m` or `90d`. A *share* is a number like `2` or a part like `10%`.
"""
_ROW = "| {} | {} | {} | {} |\n"


def page(schemas: Mapping[str, Schema]) -> str:
    parts = [_HEAD, "\n"]
    parts.extend(f"- [{kind}](#{kind.lower()})\n" for kind in schemas)
    parts.append(f"- [{_SECTION}](#{_SECTION.lower()})\n- [Metadata](#metadata)\n")
    for kind, schema in schemas.items():
        parts.append(f"\n## {kind}\n\n{schema['description']}\n\n")
        parts.append(_table(schema["properties"]["spec"], schema["$defs"]))
    shared: Schema = next(iter(schemas.values()))["$defs"]
    parts.append(f"\n## {_SECTION}\n\n{shared[_SECTION]['description']}\n\n")
    parts.append(_table({"$ref": f"#/$defs/{_SECTION}"}, shared, root="access"))
    parts.append("\n## Metadata\n\nThe same for all kinds.\n\n")
    parts.append(_table({"$ref": "#/$defs/Metadata"}, shared, root="metadata"))
    return "".join(parts)


def _table(schema: Schema, shared: Mapping[str, Schema], root: str = "spec") -> str:
    rows = [_ROW.format("Field", "Type", "Default", "Meaning"), "|---|---|---|---|\n"]
    rows.extend(_rows(schema, shared, root))
    return "".join(rows)


def _rows(schema: Schema, shared: Mapping[str, Schema], path: str) -> Iterator[str]:
    model = _model(schema, shared)
    required: list[str] = model.get("required", [])
    for name, field in model.get("properties", {}).items():
        here = f"{path}.{name}"
        yield _ROW.format(
            f"`{here}`",
            _type(field, shared).replace("|", "\\|"),
            "**required**" if name in required else _default(field),
            _meaning(field, shared).replace("|", "\\|"),
        )
        inner, is_list = _inside(field, shared)
        if inner is not None and _reference(inner) != _SECTION:
            yield from _rows(inner, shared, here + ("[]" if is_list else ""))


def _meaning(field: Schema, shared: Mapping[str, Schema]) -> str:
    # pydantic leaves a description out where it says the same as the model's own.
    return field.get("description") or _model(_plain(field), shared).get("description", "")


def _model(schema: Schema, shared: Mapping[str, Schema]) -> Schema:
    return shared[_reference(schema)] if "$ref" in schema else schema


def _reference(schema: Schema) -> str:
    return str(schema.get("$ref", "")).rsplit("/", 1)[-1]


def _plain(schema: Schema) -> Schema:
    """Without the arm for null."""
    rest = [arm for arm in schema.get("anyOf", []) if arm.get("type") != "null"]
    return rest[0] if len(rest) == 1 else schema


def _inside(field: Schema, shared: Mapping[str, Schema]) -> tuple[Schema | None, bool]:
    """The model in a field, and whether it is in a list."""
    plain = _plain(field)
    is_list = plain.get("type") == "array"
    inner = _plain(plain["items"]) if is_list else plain
    has_fields = "$ref" in inner and "properties" in shared[_reference(inner)]
    return (inner if has_fields else None), is_list


def _type(field: Schema, shared: Mapping[str, Schema]) -> str:
    plain = _plain(field)
    if _reference(plain) == _SECTION:
        return f"[access](#{_SECTION.lower()})"
    plain = _model(plain, shared)
    if "const" in plain or "enum" in plain:
        return ", ".join(f"`{choice}`" for choice in plain.get("enum", [plain.get("const")]))
    if plain.get("pattern") in _PATTERNS:
        return _PATTERNS[plain["pattern"]]
    if {arm.get("type") for arm in plain.get("anyOf", [])} == {"integer", "string"}:
        return "share"
    if plain.get("type") == "array":
        return f"list of {_plural(_type(plain['items'], shared))}"
    if plain.get("type") == "object":
        return "mapping" if "properties" in plain else "text by key"
    if plain.get("type") == "integer" and "minimum" in plain and "maximum" in plain:
        return f"{plain['minimum']} to {plain['maximum']}"
    return _TYPES.get(str(plain.get("type")), "text")


def _plural(noun: str) -> str:
    return f"{noun}s" if re.fullmatch("name|mapping|duration", noun) else noun


def _default(field: Schema) -> str:
    default = field.get("default")
    if default is None or isinstance(default, dict):
        return ""
    if isinstance(default, str):
        return f"`{default}`"
    return f"`{json.dumps(default)}`"
