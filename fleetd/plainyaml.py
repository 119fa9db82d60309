"""
YAML from others (kubeconfigs, clouds.yaml, patches): safe, and by libyaml where it is built in.

Not for documents of ours: those keep their positions and have limits (`topology.yamltree`).
"""

from typing import Any

import msgspec
import yaml

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Error = yaml.YAMLError


def load(text: str | bytes) -> Any:  # noqa: ANN401 - whatever it holds
    """Raises `Error`."""
    if text[:1] in ("{", b"{"):
        try:
            return msgspec.json.decode(text)  # it is YAML too, and much quicker to read so
        except ValueError:
            pass
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - both are safe loaders
