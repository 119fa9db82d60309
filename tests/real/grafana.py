"""
Grafana's own schemas of a dashboard, and what they say against ours.

Grafana publishes its types and no schemas; `parts/grafana-schemas/schemas.mjs` turns the ones into
the others, with npm modules that are pinned there.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import jsonschema

from tests.real import build, lab

PART = "grafana-schemas"
LONG = 120

Json = Mapping[str, Any]


@lru_cache(maxsize=1)
def schemas() -> Mapping[str, Json]:
    """By name; the test is skipped, or fails, where the modules are not there. Takes seconds."""
    modules = lab.modules(PART)
    # Read from standard input, a script finds its modules from where it is run.
    done = subprocess.run(
        [shutil.which("node") or "node", "--input-type=module", "-"],
        input=(build.PARTS / PART / "schemas.mjs").read_bytes(),
        cwd=modules.parent,
        capture_output=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return json.loads(done.stdout)


def complaints(board: Json) -> Iterator[str]:
    """What Grafana's types say against a dashboard, panel by panel: that a panel is no row either
    would hide what is wrong with it."""
    whole = schemas()["dashboard"]
    for said in _against(whole, {**board, "panels": []}):
        yield f"{board['uid']}: {said}"
    for panel in board["panels"]:
        kind = "RowPanel" if panel["type"] == "row" else "Panel"
        found = [*_against({**whole, "$ref": f"#/definitions/{kind}"}, panel)]
        if kind == "Panel":
            found += _of_type(panel)
        for said in found:
            yield f"{board['uid']}, {panel['title']}: {said}"


def _of_type(panel: Json) -> Iterator[str]:
    """What the panel's own type says: its options, and how it draws a field."""
    options = schemas().get(f"{panel['type']} options")
    if options is None:
        yield f"no schema for panels of type {panel['type']}; add it to schemas.mjs"
        return
    yield from _against(options, panel["options"])
    config = panel["fieldConfig"]
    custom = schemas().get(f"{panel['type']} custom")
    if custom is not None:
        yield from _against(custom, config["defaults"].get("custom", {}))
    defaults = {**schemas()["dashboard"], "$ref": "#/definitions/FieldConfig"}
    for one in (one for change in config["overrides"] for one in change["properties"]):
        name, _, rest = one["id"].partition(".")
        if name != "custom":
            yield from _against(defaults, {name: one["value"]})
        elif custom is not None:
            # An override names one property; what else is required is in the defaults.
            yield from _against(custom, {**config["defaults"]["custom"], rest: one["value"]})


def _against(schema: Json, value: Any) -> Iterator[str]:
    validator = jsonschema.Draft7Validator(schema)
    for error in validator.iter_errors(value):  # pyright: ignore[reportUnknownMemberType]
        yield f"{'/'.join(map(str, error.absolute_path)) or '.'}: {error.message[:200]}"
