"""Where a document says that something secret is found."""

from collections.abc import Iterator

from topology.documents.base import Access, Document
from topology.documents.cluster import Cluster
from topology.documents.pool import ServerPool
from topology.documents.region import Region

Path = tuple[str | int, ...]


def of(document: Document) -> Iterator[tuple[Path, Access]]:
    """Each `access` of a document and its place in it."""
    match document:
        case Region(spec=spec):
            yield ("spec", "garden", "access"), spec.garden.access
            yield ("spec", "metal", "access"), spec.metal.access
            if spec.secrets.access is not None:
                yield ("spec", "secrets", "access"), spec.secrets.access
            if spec.git.access is not None:
                yield ("spec", "git", "access"), spec.git.access
        case ServerPool(spec=spec):
            yield ("spec", "access"), spec.access
        case Cluster(spec=spec) if spec.adopted is not None:
            yield ("spec", "adopted", "access"), spec.adopted.access
        case _:
            return
