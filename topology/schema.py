"""
What is generated from the documents' models: JSON schemas for editors, CRDs, the reference page.

    python -m topology.schema            write them
    python -m topology.schema --check    exit 1 and name the files that are not current

The models are the one source; nobody edits the files that are written here.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from topology import crds, reference
from topology.catalogue import Component
from topology.documents.kinds import KINDS

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m topology.schema", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, say what is stale")
    check: bool = parser.parse_args(arguments).check
    files = generate()
    stale = [name for name, text in files.items() if _content(root / name) != text]
    for name in stale:
        if check:
            sys.stderr.write(f"{name} is not current; run: python -m topology.schema\n")
        else:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(files[name])
            sys.stdout.write(f"wrote {name}\n")
    return 1 if check and stale else 0


def generate() -> Mapping[str, str]:
    """All generated files, by their path in the repository."""
    files: dict[str, str] = {}
    for kind, model in KINDS.items():
        files[f"topology/schema/{kind.lower()}.json"] = _json(of(model))
        files[f"deploy/crds/{crds.file_name(kind)}"] = crds.text(kind, of(model))
    files["topology/schema/fleet.json"] = _json(of_any())
    files["topology/schema/component.json"] = _json(of(Component))
    files["docs/documents.md"] = reference.page({kind: of(model) for kind, model in KINDS.items()})
    return files


def of(model: type[BaseModel]) -> Schema:
    """The JSON schema of one kind."""
    return {"$schema": DIALECT, **_tidy(model.model_json_schema(by_alias=True))}


def of_any() -> Schema:
    """One schema for a file with documents of all kinds: it picks by `kind`, so that an editor
    complains about the kind that is meant and not about all seven."""
    refs, merged = models_json_schema(
        [(model, "validation") for model in KINDS.values()], by_alias=True
    )
    return {
        "$schema": DIALECT,
        "title": "A document of fleetd",
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {"kind": {"enum": list(KINDS)}},
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                "then": {"$ref": refs[model, "validation"]["$ref"]},
            }
            for kind, model in KINDS.items()
        ],
        "$defs": _tidy(merged["$defs"]),
    }


def _tidy(schema: object) -> Any:  # noqa: ANN401 - JSON of any shape goes in and comes out
    """Without the titles that pydantic makes from field names, and with one-line descriptions."""
    if isinstance(schema, list):
        return [_tidy(part) for part in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    tidy: Schema = {}
    for key, value in cast("dict[str, object]", schema).items():
        # A field may be called title or description: then the value is its schema, not text.
        if key == "description" and isinstance(value, str):
            tidy[key] = " ".join(value.split())
        elif key != "title" or not isinstance(value, str):
            tidy[key] = _tidy(value)
    return tidy


def _json(schema: Schema) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _content(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
