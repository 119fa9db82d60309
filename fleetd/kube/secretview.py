"""
One Secret of a cluster as fleetd sees it: names and marks in plain, every value wrapped.

It is asked for by name at each look. A watch on one name would tell sooner, but costs a connection
for each of some hundred Secrets, to hear of what changes a few times a year and is looked at twice
a minute anyway; and the rights for a `get` by name are the smallest there are. The one rule: a
Secret is read through `Clusters.secret` only, so that no value is ever in a plain dict for longer
than it takes to decode it, and nobody collects the Secrets of a cluster (`Clusters.cache` refuses).
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleetd.secrets import Secret

KIND = ("", "Secret")


@dataclass(frozen=True, slots=True)
class SecretView:
    type: str
    metadata: Mapping[str, Any]
    values: Mapping[str, Secret]
    """What is no text is left out."""

    @classmethod
    def of(cls, live: Mapping[str, Any]) -> "SecretView":
        data: Mapping[str, str] = live.get("data") or {}
        values: dict[str, Secret] = {}
        for key, encoded in data.items():
            try:
                values[key] = Secret(base64.b64decode(encoded, validate=True).decode())
            except ValueError:
                continue
        return cls(str(live.get("type") or ""), live["metadata"], values)

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.get("labels") or {}

    def object(self) -> dict[str, Any]:
        """Without what is secret, for who judges objects."""
        return {"apiVersion": "v1", "kind": "Secret", "type": self.type, "metadata": self.metadata}
