"""Addresses of Git, OpenBao and Ironic: a host, no password, nothing that fleetd adds itself."""

from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit

from topology import complaints
from topology.checks.index import Finding, Index, Path
from topology.documents.region import Region


def reachable(fleet: Index) -> Iterator[Finding]:
    for region in fleet.every(Region):
        spec = region.spec
        yield from _url(fleet, region, ("spec", "git", "url"), spec.git.url, ("https", "ssh"))
        if spec.secrets.address != "managed":
            at: Path = ("spec", "secrets", "address")
            yield from _url(fleet, region, at, spec.secrets.address, ("https",), bare=True)
        if spec.metal.url is not None:
            at = ("spec", "metal", "url")
            yield from _url(fleet, region, at, spec.metal.url, ("https", "http"))


def folders(fleet: Index) -> Iterator[Finding]:
    """Folder and branch in Git. A wrong folder is an empty one, and Flux prunes everything when
    its folder is empty."""
    for region in fleet.every(Region):
        path = region.spec.git.path
        parts = path.removesuffix("/").split("/")
        if path.startswith("/") or not path.isprintable() or {"", ".", ".."} & set(parts):
            yield fleet.complain(
                region,
                ("spec", "git", "path"),
                code="git-path-invalid",
                message=f"{complaints.show(path)} is not a folder inside the repository",
                hint="write it relative to the repository, e.g. clusters",
            )
        branch = region.spec.git.branch
        if branch.startswith(("-", "/", ".")) or any(
            sign in branch for sign in ("..", " ", "~", "^", ":", "?", "*", "[", "\\", "@{")
        ):
            yield fleet.complain(
                region,
                ("spec", "git", "branch"),
                code="git-branch-invalid",
                message=f"{complaints.show(branch)} is not the name of a branch",
                hint="write e.g. main",
            )


def _url(
    fleet: Index,
    region: Region,
    path: Path,
    text: str,
    schemes: tuple[str, ...],
    *,
    bare: bool = False,
) -> Iterator[Finding]:
    split = _split(text)
    if split is not None and _tells_secret(split):
        yield fleet.complain(
            region,
            path,
            code="url-with-password",
            message="a password or token stands in the address, where everybody can read it",
            hint="take it out, change it, and name the new one with access",
        )
        return
    if split is None or split.scheme not in schemes or not split.hostname:
        wrong = "is not an address"
    elif bare and (split.path.strip("/") or split.query or split.fragment):
        wrong = "has more than scheme, host and port"
    elif split.query or split.fragment:
        wrong = "has a '?' or '#' part"
    else:
        return
    example = f"{schemes[0]}://{path[1]}.eu-1.example"
    yield fleet.complain(
        region,
        path,
        code="url-invalid",
        message=f"{complaints.show(text)} {wrong}",
        hint=f"write {' or '.join(schemes)} and a host, e.g. {example}",
    )


def _tells_secret(split: SplitResult) -> bool:
    """`ssh://git@host` names a user; the user of an https address is usually a token."""
    return split.password is not None or (split.scheme != "ssh" and split.username is not None)


def _split(text: str) -> SplitResult | None:
    if not text.isprintable() or " " in text:
        return None
    try:
        split = urlsplit(text)
        _ = split.port
    except ValueError:
        return None
    return split
