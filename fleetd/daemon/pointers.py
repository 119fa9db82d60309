"""
What documents that were sent name as secret, and whether who sent them may name it.

The daemon can read more than one region's passwords, and a document says where they are sent. So a
caller who is limited to regions may name the files and variables that documents of those regions
name already, and no others; what lies in OpenBao or in a cluster is the region's own anyway.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from fleetd.surface import reach
from topology import load, yamlplace
from topology.documents import accesses
from topology.problem import Problem


class Pointer(NamedTuple):
    region: str
    kind: str
    """file or env."""
    place: str


def of(item: load.Item, folder: Path | None) -> Iterator[Pointer]:
    """Of one document; relative files begin in the folder."""
    content = item.document.model_dump(mode="json", by_alias=True, exclude_unset=True)
    region = reach.region_of(content)
    for _, access in accesses.of(item.document):
        if access.env is not None:
            yield Pointer(region, "env", access.env)
        if access.file is not None:
            whole = folder / access.file if folder is not None else Path(access.file)
            yield Pointer(region, "file", str(whole.absolute()))


def strange(sent: Iterable[Pointer], known: Iterable[Pointer]) -> tuple[Pointer, ...]:
    """Those that no document of the same region names yet."""
    return tuple(sorted(set(sent) - set(known)))


def homeless(bundle: load.Bundle) -> Iterator[Problem]:
    """Relative files in documents that lie nowhere."""
    for item in bundle.items:
        for path, access in accesses.of(item.document):
            if access.file is None or Path(access.file).is_absolute():
                continue
            line, column = yamlplace.locate(bundle.sources[item.file], item.index, path)
            yield Problem(
                file=item.file,
                line=line,
                column=column,
                kind=item.kind,
                name=item.name,
                field=f"{'.'.join(map(str, path))}.file",
                message="a relative file begins where its document lies, and this one lies nowhere",
                hint="write its whole path, or hand the document over with fleetctl apply",
                code="file-relative",
            )
