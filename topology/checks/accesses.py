"""
Where secrets are said to be: every `access` of every document, and whether its path can be read.

Only what the documents show: whether the file or the Secret is there is found out by whoever
opens it.
"""

from collections.abc import Iterator

from topology import complaints
from topology.checks.index import Finding, Index, Path
from topology.documents import accesses, base
from topology.documents.cluster import Cluster
from topology.documents.pool import ServerPool
from topology.documents.region import Region

Found = tuple[base.Document, Path, base.Access]


def of(fleet: Index) -> Iterator[Found]:
    """All of them, in the order of the documents' kinds."""
    for kind in (Region, ServerPool, Cluster):
        for document in fleet.every(kind):
            for path, access in accesses.of(document):
                yield document, path, access


def paths(fleet: Index) -> Iterator[Finding]:
    """Paths in OpenBao that can be read as they are written."""
    for region in fleet.every(Region):
        at: Path = ("spec", "secrets", "mount")
        yield from openbao(fleet, region, at, region.spec.secrets.mount, "")
    for document, path, access in of(fleet):
        if access.openbao is not None:
            at = (*path, "openbao", "path")
            yield from openbao(fleet, document, at, access.openbao.path, _mount(fleet, document))


def openbao(
    fleet: Index, document: base.Document, at: Path, path: str, mount: str
) -> Iterator[Finding]:
    """The complaint about one path below the KV mount."""
    parts = path.split("/")
    if path.startswith("/") or path.endswith("/"):
        wrong, right = "begins or ends with '/'", path.strip("/")
    elif parts[0] == mount and len(parts) > 1:
        wrong, right = f"begins with the name of the mount, {mount!r}", "/".join(parts[1:])
    elif parts[0] in {"data", "metadata"} and len(parts) > 1:
        wrong = f"begins with {parts[0] + '/'!r}, which OpenBao puts in by itself"
        right = "/".join(parts[1:])
    elif any(part in {"", ".", ".."} for part in parts):
        wrong = "has an empty part, '.' or '..'"
        right = "/".join(part for part in parts if part not in {"", ".", ".."})
    elif not path.isprintable() or any(sign in path for sign in " ?#%*+\\"):
        wrong, right = "has a sign that a path cannot have", ""
    else:
        return
    yield fleet.complain(
        document,
        at,
        code="openbao-path-invalid",
        message=f"the path {complaints.show(path)} {wrong}",
        hint=f"write {complaints.show(right)}"
        if right
        else "use letters, digits, '-', '_' and '.', with '/' between the parts",
    )


def _mount(fleet: Index, document: base.Document) -> str:
    if isinstance(document, Region):
        return document.spec.secrets.mount
    region = fleet.regions.get(str(getattr(getattr(document, "spec", None), "region", "")))
    return region.spec.secrets.mount if region is not None else ""
