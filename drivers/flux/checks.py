"""
What is wrong with a spec before anything is written for Flux. Pure.

Documents and catalogue passed their own checks; this is what only this driver knows: a chart
without a repository, or a folder that would be the whole repository.
"""

from collections.abc import Mapping
from typing import Any

from topology.resource import Resource


def check(want: Resource) -> list[str]:
    """In words; empty if nothing is wrong."""
    install: Mapping[str, Any] = want.spec.get("install", {})
    by = install.get("by")
    match want.ref.kind, by:
        case "flux", "apply":
            return _missing(want, "parameters", ("version", "registry", "operator"))
        case "flux-source", "apply":
            return _missing(want, "git", ("url", "branch"))
        case "flux-target", "apply":
            return [] if want.spec.get("cluster") else [f"{want.ref} is for no cluster"]
        case _, "flux-helm":
            return _missing(want, "install", ("name", "namespace", "repository"))
        case _, "flux-kustomization":
            return _folder(want)
        case _:
            return [f"the flux driver cannot install {want.ref.kind} by {by or 'nothing'}"]


def _missing(want: Resource, part: str, names: tuple[str, ...]) -> list[str]:
    given: Mapping[str, Any] = want.spec.get(part, {})
    return [f"{want.ref} has no {part}.{name}" for name in names if not given.get(name)]


def _folder(want: Resource) -> list[str]:
    given: Mapping[str, Any] = want.spec.get("parameters", {})
    path = str(given.get("path", ""))
    if not path.strip("./ "):
        return [f"{want.ref} has no folder: Flux would take the whole repository"]
    if ".." in path.split("/"):
        return [f"{want.ref} has the folder {path}, which leads out of the repository"]
    return []
