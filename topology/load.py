"""
Files to documents: read them, check each by itself, and say exactly what is wrong and where.

What documents say about each other is checked later (`topology.checks`). The rule to know:
nothing here raises for bad input. Whatever the bytes are, the answer is a bundle with documents,
problems, or both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from topology import complaints, files, salvage, yamlevents, yamlplace, yamltree
from topology.complaints import Complaint
from topology.documents import accesses
from topology.documents import kinds as table
from topology.documents.base import API_VERSION, NAME, Document
from topology.problem import Problem
from topology.yamltree import Value

PROBLEMS_MAX = 100
"""Per file. Nobody reads more of them before the first are repaired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A document and where it stands."""

    document: Document
    file: str
    """As the user named it."""
    index: int
    """Position in the file; empty documents do not count."""
    folder: Path
    """Relative paths in the document start here."""

    @property
    def kind(self) -> str:
        return type(self.document).__name__

    @property
    def name(self) -> str:
        return self.document.metadata.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Everything that was given. Nothing may be applied from it while it has a problem."""

    items: tuple[Item, ...]
    problems: tuple[Problem, ...]
    sources: Mapping[str, bytes]
    """The bytes of each file, for finding lines."""
    rests: tuple[tuple[Item, salvage.Rest], ...] = ()
    """What is left of refused documents without their bad parts; only good for complaints."""
    refused: tuple[tuple[str, str], ...] = ()
    """Kind and name of each document that is not among the items because something is wrong with
    it; empty where that could not be read either."""

    def complain(
        self,
        item: Item,
        path: yamlevents.Path,
        *,
        code: str,
        message: str,
        hint: str = "",
        at_key: bool = False,
    ) -> Problem:
        """A problem at a place of a document: `("spec", "workers", 0, "minimum")`."""
        line, column = yamlplace.locate(
            self.sources.get(item.file, b""), item.index, path, key=at_key
        )
        return Problem(
            file=item.file,
            line=line,
            column=column,
            kind=item.kind,
            name=item.name,
            field=show_path(path),
            message=message,
            hint=hint,
            code=code,
        )


Kinds = Mapping[str, type[Document]]

_ELSEWHERE = {
    **dict.fromkeys(table.KINDS, "it describes a fleet: give it among the documents"),
    **dict.fromkeys(
        ("Component", "HealthProfile"),
        "it belongs to the catalogue: keep it in a directory of its own, and give that with "
        "--catalogue",
    ),
}
"""What to say of a kind that is known, but not here."""
_GROUP_NAME = API_VERSION.partition("/")[0]
_GROUP = f"{_GROUP_NAME}/".encode()


def load(paths: Sequence[Path], kinds: Kinds = table.KINDS) -> Bundle:
    """Read files and directories; of directories all `*.yaml` below them, hidden ones aside. A
    file that a document names as holding a secret is no document, wherever it lies."""
    work = _Work(kinds)
    seen: set[str] = set()
    others: dict[str, tuple[Path, bytes | Problem]] = {}
    for path in paths:
        for file in work.files(path):
            real = files.real(file)
            if real in seen:
                continue
            seen.add(real)
            data = _content(file)
            if isinstance(data, bytes) and _GROUP in data:
                work.take(show_file(file), data, file.parent)
            else:
                others[real] = (file, data)
    secret = work.secret_files() if others else frozenset[str]()
    for real, (file, data) in others.items():
        if real in secret:
            continue
        if isinstance(data, bytes):
            work.take(show_file(file), data, file.parent)
        else:
            work.tell(data)
    work.not_nothing()
    return work.bundle()


def load_bytes(named: Mapping[str, bytes], kinds: Kinds = table.KINDS) -> Bundle:
    """The same for what is in memory already, e.g. the body of a request."""
    work = _Work(kinds)
    for name, data in named.items():
        work.take(name, data, Path(name).parent)
    return work.bundle()


@dataclass(slots=True)
class _Work:
    kinds: Kinds
    items: list[Item] = field(default_factory=list[Item])
    problems: list[Problem] = field(default_factory=list[Problem])
    sources: dict[str, bytes] = field(default_factory=dict[str, bytes])
    rests: list[tuple[Item, salvage.Rest]] = field(default_factory=list[tuple[Item, salvage.Rest]])
    refused: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def bundle(self) -> Bundle:
        return Bundle(
            items=tuple(self.items),
            problems=tuple(sorted(self.problems)),
            sources=self.sources,
            rests=tuple(self.rests),
            refused=tuple(self.refused),
        )

    def files(self, path: Path) -> list[Path]:
        """The files a path stands for, sorted."""
        if not files.is_folder(path):
            return [path]
        before = len(self.problems)
        every = sorted(files.below(path, self._closed), key=lambda file: file.parts)
        found = [file for file in every if file.suffix == files.SUFFIX]
        for file in every:
            if file.suffix != files.SUFFIX:
                self._misnamed(file)
        if not found and len(self.problems) == before:
            self.tell(
                _about_file(
                    path,
                    "no-documents",
                    "there is no *.yaml file in this directory",
                    "give the directory that holds the documents; their names end in .yaml",
                )
            )
        return found

    def _closed(self, folder: Path, cause: OSError) -> None:
        self.tell(_unreadable(folder, cause))

    def _misnamed(self, file: Path) -> None:
        """A document that would be passed over in silence. Other tools' files may end as they
        like."""
        data = _content(file)
        if isinstance(data, bytes) and _GROUP in data:
            self.tell(
                _about_file(
                    file,
                    "file-misnamed",
                    "of a directory only *.yaml files are read, so this document would be missing",
                    f"rename it to {show_file(Path(file.name).with_suffix(files.SUFFIX))}",
                )
            )

    def secret_files(self) -> frozenset[str]:
        """The files that hold what documents call secret. Read as documents they would be refused,
        and a complaint could show what is in them."""
        items = [*self.items, *(item for item, _ in self.rests)]
        return frozenset(
            files.real(item.folder / access.file)
            for item in items
            for _, access in accesses.of(item.document)
            if access.file is not None
        )

    def tell(self, problem: Problem) -> None:
        """Complain about a file that was not read, so that nobody calls its documents missing."""
        self.refused.append(("", ""))
        if problem not in self.problems:
            self.problems.append(problem)

    def not_nothing(self) -> None:
        """An empty set is a slip of the hand: nothing that exists is ever meant to be gone."""
        if self.sources and not self.items and not self.problems:
            self.tell(
                _about_file(
                    Path(next(iter(self.sources))),
                    "no-documents",
                    "there is not one document in it",
                    f"a document is a mapping with apiVersion: {API_VERSION}, kind, metadata and "
                    "spec",
                )
            )

    def take(self, file: str, data: bytes, folder: Path) -> None:
        """Read one file's bytes."""
        self.sources[file] = data
        reading = yamltree.read_all(data)
        if not reading.complete:
            self.refused.append(("", ""))
        room = PROBLEMS_MAX - len(reading.faults)
        for fault in reading.faults:
            self.problems.append(_from_fault(file, data, fault, reading.documents))
        for index, value in enumerate(reading.documents):
            if index in reading.broken:
                self.refused.append(_identity(value))
            elif room > 0:
                room -= self._document(file, index, value, folder, room)
            else:
                self.refused.append(_identity(value))
        if room <= 0:
            self.problems.append(
                Problem(
                    file=file,
                    code="more-problems",
                    message=f"there are at least {PROBLEMS_MAX} problems in this file",
                    hint="repair these first; the rest is shown then",
                )
            )

    def _model(self, value: dict[str, Any]) -> type[Document] | None:
        """The model of a document. `Cluster` of another group is not ours to read, but one of a
        wrong version of ours is."""
        version = value.get("apiVersion", API_VERSION)
        ours = isinstance(version, str) and version.startswith(f"{_GROUP_NAME}/")
        return self.kinds.get(str(value.get("kind"))) if ours else None

    def _document(self, file: str, index: int, value: Value, folder: Path, room: int) -> int:
        """Check one document; the number of problems found."""
        found = list(_head(value, self.kinds))
        if isinstance(value, dict) and (model := self._model(value)) is not None:
            try:
                document = model.model_validate({**value, "apiVersion": API_VERSION})
            except ValidationError as error:
                found += complaints.translate(model, value, error, room - len(found))
                rest = salvage.salvage(model, value, found)
                if rest is not None:
                    item = Item(document=rest.document, file=file, index=index, folder=folder)
                    self.rests.append((item, rest))
            else:
                item = Item(document=document, file=file, index=index, folder=folder)
                if not found:
                    self.items.append(item)
                    return 0
                self.rests.append((item, salvage.Rest.whole(document)))
        kind, name = _identity(value)
        self.refused.append((kind if kind in self.kinds else "", name))
        for complaint in found:
            line, column = yamlplace.locate(
                self.sources[file], index, complaint.path, key=complaint.at_key
            )
            self.problems.append(
                Problem(
                    file=file,
                    line=line,
                    column=column,
                    kind=kind,
                    name=name,
                    field=show_path(complaint.path),
                    message=complaint.message,
                    hint=complaint.hint,
                    code=complaint.code,
                )
            )
        return len(found)


def _content(file: Path) -> bytes | Problem:
    """What is in a file, or why that cannot be said."""
    try:
        if not file.exists():
            link = file.is_symlink()
            return _about_file(
                file,
                "path-missing",
                "this is a link to nothing" if link else "there is no such file or directory",
                "remove it, or restore what it leads to" if link else "check the path",
            )
        if not file.is_file():
            return _about_file(
                file, "path-not-a-file", "this is not a file", "give a file or a directory"
            )
        with file.open("rb") as stream:
            return stream.read(yamlevents.BYTES_MAX + 1)
    except (OSError, ValueError) as cause:
        return _unreadable(file, cause)


def _unreadable(path: Path, cause: Exception) -> Problem:
    why = cause.strerror if isinstance(cause, OSError) and cause.strerror else "bad name"
    return _about_file(
        path, "path-unreadable", f"cannot be read: {why.lower()}", "check its permissions"
    )


def _about_file(path: Path, code: str, message: str, hint: str) -> Problem:
    return Problem(file=show_file(path), code=code, message=message, hint=hint)


def _head(value: Value, kinds: Kinds) -> Iterator[Complaint]:
    """Is it a document at all, and of a kind we know?"""
    if not isinstance(value, dict):
        yield Complaint(
            path=(),
            code="not-a-document",
            message="this is not a document",
            hint=f"a document is a mapping with apiVersion: {API_VERSION}, kind, metadata and spec",
        )
        return
    version, kind = value.get("apiVersion"), value.get("kind")
    close = complaints.did_you_mean(kind, list(kinds))
    if (
        isinstance(version, str)
        and isinstance(kind, str)
        and not close
        and _GROUP_NAME not in version
    ):
        yield Complaint(
            path=("apiVersion",),
            code="foreign-document",
            message=f"{complaints.show(kind)} of {complaints.show(version)} is not a document of "
            "fleetd",
            hint="keep it elsewhere, or give fleetd the directory of its own documents; those have "
            f"apiVersion: {API_VERSION}",
        )
        return
    if version != API_VERSION and not _only_misspelt(value):
        yield Complaint(
            path=("apiVersion",),
            code="field-missing" if version is None else "wrong-api-version",
            message="is missing"
            if version is None
            else f"{complaints.show(version)} is not a version that fleetd reads",
            hint=f"write apiVersion: {API_VERSION}",
        )
    if not isinstance(kind, str) or kind not in kinds:
        known = f"the kinds are {', '.join(kinds)}"
        elsewhere = _ELSEWHERE.get(kind) if isinstance(kind, str) else None
        yield Complaint(
            path=("kind",),
            code="field-missing" if kind is None else "unknown-kind",
            message="is missing" if kind is None else f"there is no kind {complaints.show(kind)}",
            hint=elsewhere or (f"{close} {known}" if close else known),
        )


def _only_misspelt(value: dict[str, Any]) -> bool:
    """`apiversion: ...` is complained about as an unknown field."""
    return "apiVersion" not in value and any(key.lower() == "apiversion" for key in value)


def _identity(value: Value) -> tuple[str, str]:
    """Kind and name as far as they can be trusted to be shown."""
    if not isinstance(value, dict):
        return ("", "")
    kind, metadata = value.get("kind"), value.get("metadata")
    name: object = metadata.get("name") if isinstance(metadata, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    shown_kind = kind if isinstance(kind, str) and kind.isascii() and kind.isalnum() else ""
    shown_name = name if isinstance(name, str) and NAME.fullmatch(name) else ""
    return (shown_kind[:63], shown_name[:63])


def _from_fault(file: str, data: bytes, fault: yamlevents.Fault, documents: list[Value]) -> Problem:
    kind, name = "", ""
    if fault.document is not None and fault.document < len(documents):
        kind, name = _identity(documents[fault.document])
    message = fault.message
    if fault.code == "yaml-duplicate-key" and fault.document is not None:
        first, _ = yamlplace.locate(data, fault.document, fault.path, key=True)
        message += f", first on line {first}"
    return Problem(
        file=file,
        line=fault.line,
        column=fault.column,
        kind=kind,
        name=name,
        field=show_path(fault.path),
        message=message,
        hint=fault.hint,
        code=fault.code,
    )


def show_path(path: yamlevents.Path) -> str:
    """`spec.workers[0].minimum`; a key that is not a plain word stands in quotes, a path that is
    too long to read is cut."""
    parts: list[str] = []
    for part in path[:16]:
        if isinstance(part, int):
            parts.append(f"[{part}]")
        elif part.isascii() and part.replace("_", "a").isalnum():
            parts.append(f".{part[:63]}")
        else:
            parts.append(f"[{complaints.show(part)}]")
    return "".join(parts).removeprefix(".") + ("..." if len(path) > 16 else "")


def show_file(path: Path) -> str:
    """A file name that any terminal can print."""
    text = str(path)
    return text if text.isprintable() else ascii(text)[1:-1]
