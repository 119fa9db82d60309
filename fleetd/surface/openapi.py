"""
The HTTP interface described: OpenAPI 3.1 for programs, `docs/http.md` for people.

Generated from the table of routes, the types of what is asked and answered, and the table of
problems; nothing is described here by hand. `python -m fleetd.surface.openapi --write` makes the
page.
"""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

import fleetd
from fleetd.surface import asking, generated, problems, table
from fleetd.surface.identity import Role, Scope
from fleetd.surface.routes import JSON, REDIRECT, Route

Json = dict[str, Any]

IN_PATH = {
    "kind": "Kind of the thing, in any case.",
    "name": "Its name.",
    "region": "Name of the region.",
    "id": "As a plan or an answer names it.",
    "file": "Name of the file.",
    "folder": "Its folder.",
}
TAGS = {
    "server": "The server itself",
    "fleet": "Reading",
    "told": "Telling it something",
}
_PROOFS = ("bearer", "certificate", "session")
_HEADERS = {
    "If-Match": "Only if this is the version that is there: an ETag, or * for any.",
    "If-None-Match": "Only if this is not the version that is there; * for none at all.",
    "Last-Event-ID": "Go on after this event: the `id` of the last one that came.",
}

_HEAD = """\
# HTTP

Made by `python -m fleetd.surface.openapi --write`; do not edit. The same for programs, with the
shape of every answer: `GET /openapi.json`.

- Bodies are JSON. Errors are `application/problem+json` with a stable `code`.
- Answers to GET have an `ETag`; `If-None-Match` saves reading the same again.
- `X-Request-Id` is taken over from the request, or made, and stands in log and audit.
- A browser that logged in sends the `csrf` of `/api/v1/whoami` as `X-CSRF-Token` with all but GET.
- The head of a request must come within 30 seconds, its body within 20. Who takes nothing of an
  answer for 20 seconds is cut off. Of more than 4,000 connections, those go first that have asked
  nothing for longest.
"""


def document(routes: Iterable[Route] = table.ROUTES) -> Json:
    """As /openapi.json serves it."""
    shown = list(routes)
    kinds = [problems.Problem, *_types(shown)]
    refs, schemas = msgspec.json.schema_components(
        kinds, ref_template="#/components/schemas/{name}"
    )
    named = dict(zip(map(_key, kinds), refs, strict=True))
    paths: dict[str, Json] = {}
    for route in shown:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, named)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fleetd",
            "version": fleetd.__version__,
            "description": "Runs a CobaltCore cloud as one thing. Errors are problem documents "
            "(RFC 9457) with a stable `code`.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "certificate": {"type": "mutualTLS"},
                "session": {"type": "apiKey", "in": "cookie", "name": "__Host-fleetd"},
            },
        },
    }


def _types(routes: Iterable[Route]) -> list[Any]:
    found: dict[str, Any] = {}
    for route in routes:
        for kind in (route.answer, route.body):
            if kind is not None:
                found[_key(kind)] = kind
    return list(found.values())


def _key(kind: Any) -> str:  # noqa: ANN401 -- a type, or what typing makes of one
    return f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', kind)}"


def _operation(route: Route, named: Mapping[str, Json]) -> Json:
    shown: Json = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": route.summary,
        "description": _described(route),
        "parameters": [*_in_path(route), *_in_query(route), *_in_headers(route)],
        "responses": _responses(route, named),
        "x-role": route.role.word,
        "security": [] if route.role is Role.OPEN else [{name: []} for name in _PROOFS],
    }
    if route.body is not None:
        content = {JSON: {"schema": named[_key(route.body)]}}
        shown["requestBody"] = {"required": True, "content": content}
    return shown


def _described(route: Route) -> str:
    role = "Open to everybody" if route.role is Role.OPEN else f"Needs the role {route.role.word}"
    scope = "" if route.scope is Scope.NONE else f"; {route.scope.value}"
    return f"{route.about} {role}{scope}.".strip()


def _in_path(route: Route) -> list[Json]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": IN_PATH[name],
            "schema": {"type": "string", "minLength": 1},
        }
        for name in route.parameters
    ]


def parameters(query: type[asking.Query]) -> dict[str, Json]:
    """The schema of each parameter; it cannot be null where it stands in an address."""
    schema = msgspec.json.schema(query)
    properties: dict[str, Json] = next(iter(schema["$defs"].values()))["properties"]
    found: dict[str, Json] = {}
    for name, told in properties.items():
        plain = {key: value for key, value in told.items() if key != "anyOf" and value is not None}
        for one in told.get("anyOf", ()):
            if one != {"type": "null"}:
                plain |= one
        found[name] = plain
    return found


def _in_query(route: Route) -> list[Json]:
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": schema.pop("description", ""),
            "schema": schema,
        }
        for name, schema in parameters(route.query).items()
    ]


def headers(route: Route) -> tuple[str, ...]:
    """The headers that mean something to a route."""
    if route.method in {"PUT", "DELETE"}:
        return "If-Match", "If-None-Match"
    if route.media == JSON and not route.writes:
        return ("If-None-Match",)
    return ("Last-Event-ID",) if route.name == "watch" else ()


def _in_headers(route: Route) -> list[Json]:
    return [
        {
            "name": name,
            "in": "header",
            "required": False,
            "description": _HEADERS[name],
            "schema": {"type": "string"},
        }
        for name in headers(route)
    ]


def _responses(route: Route, named: Mapping[str, Json]) -> Json:
    schema = named[_key(route.answer)] if route.answer is not None else {"type": "string"}
    found: Json = {"200": {"description": "Done", "content": {route.media: {"schema": schema}}}}
    if route.media == REDIRECT:
        where = {"description": "Where to go", "schema": {"type": "string"}}
        found = {"303": {"description": "Go elsewhere", "headers": {"Location": where}}}
    if "If-None-Match" in headers(route) and not route.writes:
        found["304"] = {"description": "It is the version that you have"}
    codes: dict[int, list[str]] = {}
    for code in (*route.problems, *(("bad-etag",) if headers(route) else ())):
        codes.setdefault(problems.TITLES[code][0], []).append(code)
    for status, several in sorted(codes.items()):
        told = "; ".join(f"`{c}`: {problems.TITLES[c][1]}" for c in dict.fromkeys(several))
        content = {problems.CONTENT_TYPE: {"schema": named[_key(problems.Problem)]}}
        found[str(status)] = {"description": told, "content": content}
    return found


def page() -> str:
    """`docs/http.md`."""
    parts = [_HEAD]
    for tag, title in TAGS.items():
        parts.append(f"\n## {title}\n")
        parts += [_section(route) for route in table.ROUTES if route.tag == tag]
    rows = [f"| `{code}` | {status} | {title} |" for code, (status, title) in _known()]
    parts.append("\n## Problems\n\n| code | status | meaning |\n|---|---|---|\n" + "\n".join(rows))
    return "".join(parts) + "\n"


def _known() -> list[tuple[str, tuple[int, str]]]:
    return sorted(problems.TITLES.items(), key=lambda one: (one[1][0], one[0]))


def _section(route: Route) -> str:
    lines = [f"\n### `{route.method} {route.path}`\n\n{route.summary}. {_described(route)}\n"]
    told = parameters(route.query)
    also = [name for name in headers(route) if route.media != JSON or route.writes]
    if told or also:
        lines.append("\n| parameter | |\n|---|---|\n")
    lines += [f"| `{name}` | {_limits(schema)} |\n" for name, schema in told.items()]
    lines += [f"| `{name}` (header) | {_HEADERS[name]} |\n" for name in also]
    lines += [f"\nBody: {_fields(route.body)}\n"] if route.body is not None else []
    if route.codes:
        lines.append(f"\nProblems of its own: {', '.join(f'`{code}`' for code in route.codes)}.\n")
    return "".join(lines)


def _limits(schema: Json) -> str:
    told = [schema.get("description", "")]
    if "enum" in schema:
        told.append(f"One of {', '.join(schema['enum'])}.")
    if "maximum" in schema and schema["maximum"] < asking.NUMBER_MAX:
        told.append(f"{schema['minimum']} to {schema['maximum']}.")
    if schema.get("default"):
        told.append(f"Default {schema['default']}.")
    return " ".join(one for one in told if one)


def _fields(body: Any) -> str:  # noqa: ANN401 -- a type
    if body is asking.Document:
        return "the document, as JSON."
    schema = msgspec.json.schema(body)
    root = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    names = [
        f"`{name}`" + ("" if name in root["required"] else " (optional)")
        for name in root["properties"]
    ]
    return f"{', '.join(names)}."


def main(argv: list[str]) -> int:
    return generated.main(argv, module="fleetd.surface.openapi", name="http.md", page=page)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
