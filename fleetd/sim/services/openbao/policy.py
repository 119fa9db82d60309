"""
OpenBao's policies: read from their text and enforced, with its rules of precedence.

Of all rules that match a path the most specific one counts, alone: an exact path before one with
wildcards, a later first wildcard before an earlier one. Rules of equal text in several policies
are added up, and `deny` beats everything. Only the parts of the language that policies really use
are known: path, capabilities, `+`, a trailing `*`, and the metadata of the token's alias.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

ROOT = "root"
DEFAULT = "default"
CAPABILITIES = frozenset(
    {"create", "read", "update", "patch", "delete", "list", "scan", "sudo", "deny"}
)
DEFAULT_TEXT = """
path "auth/token/lookup-self" { capabilities = ["read"] }
path "auth/token/renew-self" { capabilities = ["update"] }
path "auth/token/revoke-self" { capabilities = ["update"] }
path "sys/capabilities-self" { capabilities = ["update"] }
path "sys/internal/ui/resultant-acl" { capabilities = ["read"] }
path "cubbyhole/*" { capabilities = ["create", "read", "update", "delete", "list"] }
"""

_COMMENT = re.compile(r"(?m)^\s*(#|//).*$")
_RULE = re.compile(r'path\s+"([^"]+)"\s*\{([^}]*(?:\}\}[^}]*)*)\}')
_LISTED = re.compile(r"capabilities\s*=\s*\[([^\]]*)\]")
_WORD = re.compile(r'"([a-z]+)"')
_ALIAS = re.compile(r"\{\{identity\.entity\.aliases\.[^.}]+\.metadata\.([a-z_]+)\}\}")

Rules = Mapping[str, frozenset[str]]


class BadPolicy(Exception):
    """The text is not a policy."""


@lru_cache(maxsize=512)
def parse(text: str) -> Rules:
    """Paths and what is granted on them."""
    bare = _COMMENT.sub("", text)
    found: dict[str, frozenset[str]] = {}
    for path, body in _RULE.findall(bare):
        listed = _LISTED.search(body)
        words = frozenset(_WORD.findall(listed.group(1))) if listed else frozenset[str]()
        if unknown := sorted(words - CAPABILITIES):
            raise BadPolicy(f'path "{path}": invalid capability "{unknown[0]}"')
        found[path] = found.get(path, frozenset()) | words
    if _RULE.sub("", bare).strip():
        raise BadPolicy("failed to parse policy: object expected closing RBRACE")
    return found


def granted(texts: Iterable[str], path: str, meta: Mapping[str, str]) -> frozenset[str]:
    """What these policies together allow on a path."""
    best: tuple[tuple[int, ...], str] | None = None
    rules: dict[str, frozenset[str]] = {}
    for text in texts:
        for written, words in parse(text).items():
            pattern = _filled(written, meta)
            if not matches(pattern, path):
                continue
            rules[pattern] = rules.get(pattern, frozenset()) | words
            rank = (_rank(pattern), pattern)
            if best is None or rank > best:
                best = rank
    found = rules[best[1]] if best is not None else frozenset[str]()
    return frozenset() if "deny" in found else found


def matches(pattern: str, path: str) -> bool:
    return _compiled(pattern).fullmatch(path) is not None


def _filled(pattern: str, meta: Mapping[str, str]) -> str:
    """A template that names what the token does not carry matches nothing."""
    return _ALIAS.sub(lambda found: meta.get(found.group(1), "\0"), pattern)


def _rank(pattern: str) -> tuple[int, ...]:
    wild = re.search(r"[+*]", pattern)
    if wild is None:
        return (1, 0, 0, 0, len(pattern))
    glob = pattern.endswith("*")
    return (0, wild.start(), 0 if glob else 1, -pattern.count("+"), len(pattern))


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    glob = pattern.endswith("*")
    segments = (pattern[:-1] if glob else pattern).split("/")
    body = "/".join("[^/]+" if part == "+" else re.escape(part) for part in segments)
    return re.compile(body + (".*" if glob else ""))
