"""
Canaries: values that must never come out, the shapes in which they might, and where to look.

A later test adds a `Sink` (a way in which careless code lets a text out) to `SINKS`, or calls
`found` on whatever its own part has written. `found` does its own encoding and shares no code
with `fleetd.secrets`: a harness that asks the filter what to look for finds nothing.
"""

import base64
import json
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

_JWT = (
    "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.MEUCIQDcanary0123456789abcdefghijklmnopqrstuvwxyz"
)
_KUBECONFIG = """apiVersion: v1
kind: Config
users:
- name: canary
  user:
    token: canary0kube1config2token3value4abcdef
"""
_KEY = """-----BEGIN EC PRIVATE KEY-----
MHcCAQEEICanaryCanaryCanaryCanaryCanary0123456789oAoGCCqGSM49
AwEHoUQDQgAEcanaryCANARYcanaryCANARYcanaryCANARY0123456789abcdef
-----END EC PRIVATE KEY-----
"""

CANARIES: dict[str, str] = {
    "shortest": "c4n4ry!8",
    "password": "canary-Tr0ub4dor",
    "spaces": "canary correct horse battery",
    "leading-space": "  canary-with-edges  ",
    "quotes": 'canary"double\'single"',
    "backslash": "canary\\back\\slash\\n",
    "percent": "canary%20%41%%percent",
    "url-marks": "canary:/?#[]@!$&'()*+,;=",
    "plus": "canary+plus/slash=equal==",
    "unicode": "canary-Übermäßig-ß",
    "emoji": "canary-🐤-yellow-bird",
    "cjk": "金絲雀canary金絲雀",
    "tab": "canary\twith\ttabs",
    "newline": "canary-line-one\ncanary-line-two",
    "nul": "canary\x00with\x01control",
    "angle": "<canary>&amp;</canary>",
    "braces": "{canary}{0}{{x}}%s",
    "regex": "canary.*[a-z]+(x|y)$^",
    "digits": "2718281828459045",
    "hex": "deadbeefcafecanary00ff",
    "base64": "Y2FuYXJ5IGluIGEgY29hbCBtaW5l",
    "jwt": _JWT,
    "kubeconfig": _KUBECONFIG,
    "private-key": _KEY,
}

ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda value: value,
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 for URLs": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    "basic auth": lambda value: base64.b64encode(f"admin:{value}".encode()).decode(),
    "basic auth, other user": lambda value: base64.b64encode(f"root:{value}".encode()).decode(),
    "hex": lambda value: value.encode().hex(),
    "HEX": lambda value: value.encode().hex().upper(),
    "URL": lambda value: urllib.parse.quote(value, safe=""),
    "URL path": urllib.parse.quote,
    "form": urllib.parse.quote_plus,
    "JSON": lambda value: json.dumps(value)[1:-1],
    "JSON in UTF-8": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    "repr": lambda value: repr(value)[1:-1],
    "repr of bytes": lambda value: repr(value.encode())[2:-1],
}


class Leak(NamedTuple):
    canary: str
    encoding: str


def found(output: str | bytes, canaries: Iterable[str] = CANARIES) -> list[Leak]:
    """Every canary that shows in the output, and how."""
    return search(output, {name: CANARIES[name] for name in canaries})


def search(output: str | bytes, values: Mapping[str, str]) -> list[Leak]:
    """Every value that shows in the output, and how."""
    text = output.decode("utf-8", "backslashreplace") if isinstance(output, bytes) else output
    leaks: list[Leak] = []
    for name, value in values.items():
        for encoding, needles in _needles(value).items():
            if any(needle in text for needle in needles):
                leaks.append(Leak(name, encoding))
    return leaks


def _needles(value: str) -> dict[str, list[str]]:
    """What betrays a value: in base64 beside something else, its middle is enough."""
    needles = {encoding: [encode(value)] for encoding, encode in ENCODINGS.items()}
    for encoding in ("basic auth", "basic auth, other user"):
        needles[encoding] = [needles[encoding][0].rstrip("=")[12:-3]]
    # Whoever writes text into JSON writes these twice over.
    needles["repr in JSON"] = [json.dumps(repr(value)[1:-1])[1:-1]]
    needles["JSON in JSON"] = [json.dumps(json.dumps(value)[1:-1])[1:-1]]
    if "\n" in value:
        # A part of something long betrays it too: the longest of its words.
        needles["part"] = [max(value.split(), key=len)]
    return needles


class Sink(NamedTuple):
    name: str
    write: Callable[[str], str | bytes]
    """Lets a text out as careless code would, and returns what came out."""
    canaries: tuple[str, ...] = tuple(CANARIES)
    """Those that fit through this sink at all."""
