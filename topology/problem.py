"""
A complaint about a document: what is wrong, where, and what to do.

Everything that reads documents returns these; nothing raises for bad input. Problems sort by
place, so that the same documents always give the same list.
"""

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Problem:
    file: str
    line: int = 1
    column: int = 1
    kind: str = ""
    name: str = ""
    field: str = ""
    message: str
    hint: str = ""
    code: str

    def __str__(self) -> str:
        thing = f"{self.kind or '?'}/{self.name or '?'}: " if self.kind or self.name else ""
        field = f"{self.field}: " if self.field else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.file}:{self.line}:{self.column}: {thing}{field}{self.message}{hint}"

    def as_json(self) -> dict[str, object]:
        return asdict(self)
