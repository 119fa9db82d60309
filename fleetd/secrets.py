"""
Something secret, in a wrapper that gives nothing away, and a memory of what must be scrubbed.

`Secret.reveal()` is the only way to the value: searching the code for that one word finds every
place that can leak. It cannot be printed, formatted, compared with `==` by content and time,
hashed, pickled, copied, or turned into JSON, YAML, msgspec or pydantic.

The wrapper is the first wall. The second is `scrub`: every value that was ever revealed is
registered, and logs, events and tracebacks pass through `scrub` before they are written. It finds
the value plain and in the encodings in which values travel. The second wall is a net, not a
licence: a value shorter than `SHORTEST` is not looked for, because it would match by accident.
"""

import base64
import hmac
import json
import os
import re
import stat
import sys
import threading
import urllib.parse
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, cast, final

from fleetd import errors, sieve

if TYPE_CHECKING:
    # For signatures only: the documents' models take longer to load than `fleetctl --help` may.
    from fleetd.vocabulary import Ending, Event
    from topology.documents import base

HIDDEN = "<secret>"
_HIDDEN = HIDDEN.encode()
SHORTEST = sieve.SHORTEST
"""Characters. `changeme` is the shortest password we must not print; shorter ones appear in
ordinary words."""
LARGEST = 1024 * 1024
"""Bytes. A kubeconfig is 10 KiB, a bundle of certificates 300 KiB; more is the wrong file."""
WHOLE = 64 * 1024
"""Characters up to which a value is looked for as a whole; of a longer one only its parts."""
REMEMBERED = 16 * 1024 * 1024
"""Bytes kept for scrubbing, all spellings together; the least recently revealed go first. A token
of 40 has about 400, so this is room for 40,000 of them: some 240 MB with what finds them."""
SHORT = 500
CLEAN = 5000
"""So many short texts without a secret are known again: 2.5 million characters."""


class SecretError(errors.FleetError):
    """A secret cannot be read. Names the place, never the content."""


@final
class Secret:
    """Holds one secret text. Equality is by constant-time comparison; there is no hash."""

    __slots__ = ("__value",)
    __hash__ = None  # pyright: ignore[reportAssignmentType] -- a secret must not become an id

    def __init__(self, value: str) -> None:
        self.__value = value

    def reveal(self) -> str:
        """The value. Whoever calls this hands it to a far side and nowhere else."""
        REGISTRY.remember(self.__value)
        return self.__value

    def matches(self, given: str) -> bool:
        """Whether `given` is the same text, in a time that does not tell how far it is right."""
        return hmac.compare_digest(_bytes(self.__value), _bytes(given))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.matches(other.__value)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__

    def __format__(self, _spec: str) -> str:
        return HIDDEN

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("a Secret cannot be pickled or copied; pass the Secret itself")

    def __getstate__(self) -> NoReturn:
        raise TypeError("a Secret has no state to give away")

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("Secret has no subclasses: one could give the value away")

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> NoReturn:
        raise TypeError("a Secret is no field of a model; name it with Access instead")


class Registry:
    """Values to scrub, most recently revealed last. Holds the values themselves, not digests,
    because a text can only be searched for what is known."""

    def __init__(self, bytes_max: int = REMEMBERED) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[bytes, ...]] = OrderedDict()
        self._sieve = sieve.Sieve()
        self.count = 0
        """How many values were ever remembered: moves when a text should be looked at again."""
        self._clean: dict[str, None] = {}
        """Texts that hold none of these: what is said of a thing is said again at each look."""

    def remember(self, value: str) -> None:
        with self._lock:
            if value in self._known:
                self._known.move_to_end(value)
                return
            found = tuple(map(_exact, spellings(value)))
            self.count += 1
            self._known[value] = found
            self._clean.clear()
            self._bytes += sum(map(len, found))
            for spelling in found:
                self._sieve.add(spelling)
            while self._bytes > self._bytes_max and len(self._known) > 1:
                self._drop(self._known.popitem(last=False)[1])

    def _drop(self, gone: tuple[bytes, ...]) -> None:
        self._bytes -= sum(map(len, gone))
        for spelling in gone:
            self._sieve.remove(spelling)

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self._sieve)

    def forget(self) -> None:
        with self._lock:
            self._known.clear()
            self._sieve.clear()
            self._bytes = 0

    def holds(self, text: bytes) -> bool:
        """Whether any remembered value stands in a text in UTF-8, in any spelling."""
        with self._lock:
            return self._sieve.holds(text)

    def scrub(self, text: str) -> str:
        """`text` without any remembered value, in any spelling."""
        if len(text) < SHORTEST or not self._sieve:
            return text
        with self._lock:
            if text in self._clean:
                return text
            given = _exact(text)
            clean = self._sieve.replaced(given, _HIDDEN)
            if clean is not given:
                return clean.decode("utf-8", "surrogatepass")
            if len(text) <= SHORT:
                if len(self._clean) >= CLEAN:
                    self._clean.clear()
                self._clean[text] = None
            return text


def _exact(text: str) -> bytes:
    """Any text, each as other bytes than any other one."""
    return text.encode("utf-8", "surrogatepass")


REGISTRY = Registry()
"""The one memory of the process. Global on purpose: a traceback hook has nobody to ask."""


def spellings(value: str) -> Iterator[str]:
    """The ways in which a value travels, each once and long enough to be looked for."""
    parts = [value, value.strip()] if len(value) <= WHOLE else []
    # It leaks in parts as well as whole: lines, and the telling words of a kubeconfig, which may
    # be one line of JSON.
    lines = [line.strip() for line in value.splitlines()]
    if len(lines) > 1:
        parts += [line for line in lines if not _FIELD.search(line)]
    words = _BETWEEN.split(value)
    if len(words) > 1:
        parts += [word for word in words if _telling(word)]
    found = (spelling for part in parts for spelling in _encoded(part))
    yield from dict.fromkeys(spelling for spelling in found if len(spelling) >= SHORTEST)


_FIELD = re.compile(r":(\s|$)|^-----(BEGIN|END)")
"""A line of YAML or JSON, or the frame of a key: such lines stand in every kubeconfig."""


_BETWEEN = re.compile(r"[\s\"',]+")


def _telling(word: str) -> bool:
    """Words without a digit, or with a scheme, are field names and addresses: they must stay
    readable."""
    return (
        len(word) >= 20
        and "://" not in word
        and any(character.isdigit() for character in word)
        and any(character.isalpha() for character in word)
    )


def _encoded(part: str) -> Iterator[str]:
    if len(part) < SHORTEST:
        return
    raw = _bytes(part)
    quoted = urllib.parse.quote(raw, safe="")
    for once in (part, *_escaped(part), repr(raw)[2:-1]):
        yield once
        # Twice: a repr in a JSON log, JSON in a traceback. The same again unless it has something
        # to escape.
        yield from _escaped(once)
    yield quoted
    yield re.sub("%..", lambda match: match[0].lower(), quoted)
    yield urllib.parse.quote(raw)
    yield urllib.parse.quote_plus(raw)
    yield raw.hex()
    yield raw.hex().upper()
    yield from _base64(raw)


def _escaped(text: str) -> Iterator[str]:
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield repr(text)[1:-1]
    # Beside a quote of the other kind, as in JSON, those inside are escaped.
    yield repr(f'"{text}')[2:-1]


def _base64(raw: bytes) -> Iterator[str]:
    """Alone, and as part of something longer (`user:password`): of each of the three ways in
    which it can fall between groups of three bytes, what does not depend on the neighbours."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(raw).decode()
        for shift in range(3):
            text = encode(b"\0" * shift + raw).decode().rstrip("=")
            whole = (shift + len(raw)) % 3 == 0
            yield text[(0, 2, 3)[shift] : len(text) if whole else -1]


def _bytes(text: str) -> bytes:
    """Never fails: an error of the codec would carry the value in its message."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def scrub(text: str) -> str:
    """`text` without any value ever revealed in this process."""
    return REGISTRY.scrub(text)


def scrub_deep(value: object, *, depth: int = 16) -> object:
    """The same for the strings inside mappings and sequences, before they are encoded: a value
    that is encoded twice is in no list of spellings. Numbers, times and None pass as they are;
    anything else becomes its `str`, so that nothing passes unseen."""
    match value:
        case None | bool() | int() | float() | date() | timedelta():
            return value
        case str():
            return scrub(value)
        case _ if depth <= 0:
            return "..."
        case Mapping():
            pairs = cast("Mapping[object, object]", value).items()
            return {scrub(str(key)): scrub_deep(one, depth=depth - 1) for key, one in pairs}
        case list() | tuple():
            return [scrub_deep(one, depth=depth - 1) for one in cast("list[object]", value)]
        case _:
            return scrub(str(value))


def clean(event: "Event") -> "Event":
    """An event that may be kept and shown."""
    message = scrub(event.message)
    return event if message == event.message else replace(event, message=message)


def clean_ending(ending: "Ending") -> "Ending":
    """How a step ended, in words that may be kept: a far side likes to repeat what it was sent."""
    message = getattr(ending, "message", "")
    told = scrub(message)
    return ending if told == message else replace(ending, message=told)


def guard_tracebacks() -> None:
    """Scrub what the interpreter itself prints when a program or a thread dies."""

    def program(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        _print(kind, error, trace)

    def thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_type is not SystemExit:
            _print(args.exc_type, args.exc_value, args.exc_traceback)

    def unraisable(args: "sys.UnraisableHookArgs") -> None:
        _print(args.exc_type, args.exc_value, args.exc_traceback)

    sys.excepthook = program
    threading.excepthook = thread
    sys.unraisablehook = unraisable


def _print(
    kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
) -> None:
    import traceback  # noqa: PLC0415 -- only a dying program needs it

    text = "".join(traceback.format_exception(kind, error, trace))
    stream = sys.stderr or sys.__stderr__
    if stream is not None:
        stream.write(scrub(text))
        stream.flush()


def resolve(access: "base.Access", folder: Path, environ: Mapping[str, str]) -> Secret:
    """Read what `access` names. `folder` is where a relative file is looked for."""
    if access.file is not None:
        return Secret(_read(folder / access.file))
    if access.env is not None:
        value = environ.get(access.env)
        if value is None:
            raise SecretError(f"the environment variable {access.env} is not set; set it")
        if not value:
            raise SecretError(f"the environment variable {access.env} is empty; give it a value")
        return Secret(value)
    raise SecretError("only access by file or env can be read here")


def _read(path: Path) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise SecretError(f"{path} does not exist; create it or correct the path") from None
    except OSError as cause:
        raise SecretError(f"{path} cannot be opened: {cause.strerror}") from None
    try:
        # Opened first and looked at after: the answer is about the file that is read.
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise SecretError(f"{path} is a directory; name the file in it")
        if not stat.S_ISREG(mode):
            raise SecretError(f"{path} is not a regular file")
        with os.fdopen(handle, "rb", closefd=False) as stream:
            content = stream.read(LARGEST + 1)
    finally:
        os.close(handle)
    if len(content) > LARGEST:
        raise SecretError(f"{path} has more than {LARGEST} bytes, so it is hardly a secret")
    text = _text(content)
    if text is None:
        raise SecretError(f"{path} is not text in UTF-8")
    if not text.strip():
        raise SecretError(f"{path} is empty; put the secret into it")
    return text.removesuffix("\n").removesuffix("\r")


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        # Raised from outside of this block: the codec's exception carries the bytes, and must not
        # hang on to ours as its context.
        return None
