"""
What one server has of one kind, kept up to date by a watch: reading it costs no request.

Objects are kept as bytes (`Slim`) and become dicts when they are read; what was read last is
remembered as it is.

It lists, watches from there, and after a break goes on where it was, or lists again. It never goes
back in time: an object is not replaced by an older version of itself, and one that was deleted
does not come back. Who reads says who he is (`by`) and is woken once when what he read changes;
he reads again, and is woken again.

A cache is always a little behind. The one rule: whoever reads it asks `check` first, or gets it
from `Clusters.cache`, which does; a cache without a connection says "could not look", never
"not there".
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Callable
from datetime import datetime, timedelta

import structlog

from fleetd.clock import Clock
from fleetd.kube import errors, slim
from fleetd.kube.buried import Buried
from fleetd.kube.client import BREATH, KubeClient
from fleetd.kube.kinds import Kind
from fleetd.kube.pages import Listing
from fleetd.kube.readers import Readers
from fleetd.kube.room import MIB, MOST, Room
from fleetd.kube.slim import Change, Key, Memo, Object, Slim
from topology import blind
from topology.resource import Ref

_log = structlog.stdlib.get_logger("fleetd.kube.cache")

BOOKMARK = 60.0
"""Seconds. An API server sends a bookmark about once a minute, also when nothing changes."""
STALL = 2 * BOOKMARK
"""No word for so long: one bookmark may be late, two are not. The connection is dead."""
WATCH = 300
"""Seconds until the server ends a watch; up to twice that, so that a hundred watches that began
together do not end together."""
LIST_LIMIT = 60.0
"""Seconds for a whole list. 10,000 objects are 20 pages of some 50 ms."""
RELIST = timedelta(minutes=30)
"""So old may the last list get. A watch that lost an event without saying so is put right then."""
SHORT = 1.0
"""Seconds. A watch that ends sooner is a fault, not an end."""
FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0
LONGEST_RETRY_AFTER = 300.0
LAG = timedelta(seconds=30)
"""So long may the connection be lost until readers are told: five attempts (1, 2, 4, 8, 16 s)."""
REWRITTEN = timedelta(minutes=10)
"""A server that stays behind what we have seen for so long does not lag: its history was rewritten,
as by a restored backup."""
RECOUNT = 32 * MIB
"""Bytes that a watch tells until it is counted again how many are kept."""
PIECE = 250
"""Objects that are read or taken from a list in one go, some milliseconds; then others run."""


class Stale(errors.Unreachable):
    """The cache has lost its server for too long to speak for it, or never reached it."""

    def __init__(self, message: str, reason: str = blind.NO_ANSWER) -> None:
        super().__init__(message)
        self.blind = reason


class Cache:
    """Of one kind, in one namespace or in all. `run` keeps it up to date until it is cancelled."""

    def __init__(
        self,
        client: KubeClient,
        kind: Kind,
        namespace: str = "",
        *,
        clock: Clock,
        rng: random.Random,
        wake: Callable[[Ref], None],
        memo: Memo | None = None,
        room: Room | None = None,
        managed_fields: bool = False,
    ) -> None:
        """`memo` may be shared by many, `room` by all of one server."""
        self._client = client
        self._kind = self._listed_kind = kind
        self._namespace = namespace
        self._clock = clock
        self._rng = rng
        self._memo = memo or Memo()
        self._room = room or Room(MOST * MIB)
        self._part = self._room.part()
        self._grown = 0
        """Bytes that a watch has told since it was last counted how many are kept."""
        self._managed_fields = managed_fields
        """A third of an object's size; nobody but a debugger reads them."""

        self._objects: dict[Key, Slim] = {}
        self._order: list[Key] | None = None
        self._buried = Buried()
        self._readers = Readers(wake)
        self._read_at = clock.monotonic()

        self._version = ""
        """Where the next watch begins; empty: list first."""
        self._seen = ""
        """The newest version that the server told us by itself."""
        # Ages are of monotonic time: a clock that is put back or ahead makes nothing fresh or old.
        self._listed_at: float | None = None
        self._behind_since: float | None = None
        self._lost_at: float | None = None
        self._stranger = False
        """Whether the next list may come from another server than the last."""

        self._limit: asyncio.Timeout | None = None
        self._poked = asyncio.Event()
        self._tried = asyncio.Event()
        self._failures = 0
        self.error = ""
        """Why it does not follow the server; empty while it does."""
        self._blind = blind.NO_ANSWER
        """The same as a reason."""
        self.unserved = False
        """Whether the server says that it does not know the kind any more."""
        self.fresh_since: datetime | None = None
        """Since when it follows the server without a break; None while it does not."""
        self.lost_since: datetime | None = None
        """Since when it does not."""

    def __str__(self) -> str:
        return f"{self._kind.kind} in {self._namespace}" if self._namespace else self._kind.kind

    # Reading.

    @property
    def kind(self) -> Kind:
        return self._kind

    @property
    def idle(self) -> timedelta:
        """How long nobody has read it."""
        return timedelta(seconds=self._clock.monotonic() - self._read_at)

    @property
    def lost_for(self) -> timedelta:
        """How long it has not followed the server; nothing while it does."""
        since = self._lost_at
        return timedelta(seconds=self._clock.monotonic() - since if since is not None else 0)

    def get(self, name: str, namespace: str = "", *, by: Ref | None = None) -> Object | None:
        """Not to be changed by the reader: it is the cache's own."""
        self._reading()
        key = (namespace, name)
        if by is not None:
            self._readers.one(key, by)
        found = self._objects.get(key)
        return None if found is None else self._memo.read(found)

    def items(
        self, namespace: str = "", *, by: Ref | None = None, mentioning: str = ""
    ) -> tuple[Object, ...]:
        """In the order of namespace and name. Whatever changes in the cache wakes the reader, so
        read with `get` what you know the name of. `mentioning`: only those whose JSON holds this
        text somewhere, such as a name; that is quickly found, and the reader looks closer. Where
        it may still be hundreds, use `each`."""
        return tuple(self._memo.read(one) for one in self._chosen(namespace, by, mentioning))

    async def each(
        self, namespace: str = "", *, by: Ref | None = None, mentioning: str = ""
    ) -> AsyncGenerator[Object]:
        """The same, as they are now, one by one; others run in between."""
        chosen = self._chosen(namespace, by, mentioning)
        keep = sum(len(one.body) for one in chosen) < self._memo.most // 4
        for number, one in enumerate(chosen):
            if number and number % PIECE == 0:
                await asyncio.sleep(0)
            yield self._memo.read(one, keep=keep)

    def _chosen(self, namespace: str, by: Ref | None, mentioning: str) -> list[Slim]:
        self._reading()
        if by is not None:
            self._readers.all(by)
        if self._order is None:
            self._order = sorted(self._objects)
        text = mentioning.encode()
        return [
            one
            for key in self._order
            if (not namespace or key[0] == namespace) and (text in (one := self._objects[key]).body)
        ]

    async def synced(self, within: float) -> None:
        """Until it has listed once. Raises `Stale` if that failed, or takes longer than `within`
        seconds."""
        if self._listed_at is None:
            try:
                async with asyncio.timeout(within):
                    await self._tried.wait()
            except TimeoutError:
                raise Stale(f"{self} was not listed within {within:g} s") from None
        if self._listed_at is None:
            raise Stale(f"could not list {self}: {self.error}", self._blind)

    def check(self, lag: timedelta = LAG) -> None:
        """Raises `Stale` if the connection has been lost for longer than `lag`."""
        if self._listed_at is None:
            raise Stale(f"{self} was not listed yet")
        if self.lost_since is not None and self.lost_for > lag:
            since = f"{self.lost_since:%Y-%m-%d %H:%M:%S}"
            raise Stale(f"nothing heard of {self} since {since}: {self.error}", self._blind)

    def _reading(self) -> None:
        self._read_at = self._clock.monotonic()
        if self._listed_at is None:
            raise Stale(f"{self} was not listed yet")

    # Our own writes.

    def note(self, obj: Object, told: Slim | None = None) -> None:
        """What the server answered to a write of ours; the watch will say the same, later. `told`:
        the same, as it is kept."""
        if obj.get("apiVersion") != self._kind.api_version or obj.get("kind") != self._kind.kind:
            return
        noted = told or slim.of_object(obj, managed=self._managed_fields)
        if not self._namespace or noted.namespace == self._namespace:
            if told is not None:
                self._memo.know(told, obj)
            self._put(noted)

    def note_deleted(self, name: str, namespace: str = "", uid: str = "") -> None:
        """It is gone for good, not only marked for deletion."""
        self._remove((namespace, name), uid)

    # Keeping up.

    def use(self, client: KubeClient) -> None:
        """Go on with another client, at once. It may lead to another server: list anew."""
        self._client = client
        self._version = ""
        self._stranger = True
        self._failures = 0
        if self._listed_at is None:
            self._tried.clear()
        self._poked.set()
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time())

    async def run(self) -> None:
        try:
            while True:
                wait = await self._attempt()
                await self._pause(wait)
        finally:
            self._lost(errors.Unreachable("the cache has stopped"))
            self._part.leave()

    async def _attempt(self) -> float:
        """Follow for as long as it goes. Gives the seconds to wait before the next attempt."""
        self._poked.clear()
        loop = asyncio.get_running_loop()
        began = loop.time()
        cause = await self._session()
        if cause is None or self._poked.is_set():
            return 0
        if loop.time() - began > LONGEST_WAIT:
            # What lasted so long is not one more failure in a row.
            self._failures = 0
        return self._lose(cause)

    async def _session(self) -> errors.KubeError | None:
        """List if need be, and watch. Gives what ended it, or None for a good end."""
        try:
            async with asyncio.timeout(LIST_LIMIT) as self._limit:
                await self._catch_up()
                await self._follow(self._limit)
        except TimeoutError:
            return errors.Unreachable("the server was silent for too long")
        except (errors.Gone, errors.TooMuch) as cause:
            self._version = ""
            return cause
        except errors.KubeError as cause:
            return cause
        finally:
            self._limit = None
        return None

    async def _catch_up(self) -> None:
        listed = self._listed_at
        old = listed is None or self._clock.monotonic() - listed > RELIST.total_seconds()
        if not self._version or old or self.unserved:
            self._kind = await self._client.find(self._kind.group, self._kind.kind)
            seen = "" if self._stranger else self._seen
            moved = self._kind != self._listed_kind
            listing = await self._list(whole=moved or self._stranger or not self._objects)
            await self._take_all(listing, seen, moved=moved)
            self._tried.set()
        elif self.lost_since is not None:
            # A quiet watch says nothing for a minute; that it stands again must be known sooner.
            seen = self._seen
            version = await self._client.version(self._kind, self._namespace)
            if self._rewritten(version, seen):
                raise errors.Gone("the server's history was rewritten")

    async def _follow(self, limit: asyncio.Timeout) -> None:
        loop = asyncio.get_running_loop()
        began = heard = loop.time()
        limit.reschedule(heard + STALL)
        seconds = WATCH + int(WATCH * self._rng.random())
        changes = self._client.watch(
            self._kind,
            self._namespace,
            version=self._version,
            seconds=seconds,
            managed=self._managed_fields,
            # Not sooner: of one that does not let us watch nothing would be heard.
            opened=self._gain,
        )
        taken = 0
        async with contextlib.aclosing(changes):
            async for some in changes:
                now = loop.time()
                if now - heard >= 1:
                    # Not each time: setting a timer costs as much as taking a change.
                    heard = now
                    limit.reschedule(heard + STALL)
                self._failures = 0
                for change in some:
                    self._take(change)
                    self._grown += len(change.object.body)
                if self._grown > RECOUNT:
                    self._count()
                taken += len(some)
                if taken >= BREATH:
                    taken = 0
                    await asyncio.sleep(0)
        if loop.time() - began < SHORT:
            raise errors.Unreachable("the server ended the watch at once")
        self._failures = 0

    def _count(self) -> None:
        """Raises `TooMuch` if the server has no room for all that is kept of it."""
        self._grown = 0
        self._part.keep(sum(len(one.body) for one in self._objects.values()))

    async def _pause(self, seconds: float) -> None:
        """Cut short by a new client."""
        try:
            async with asyncio.timeout(seconds):
                await self._poked.wait()
        except TimeoutError:
            pass

    def _gain(self) -> None:
        if self.fresh_since is None:
            self.fresh_since = self._clock.now()
            if self.lost_since is not None:
                _log.info("follows again", cache=str(self))
        self.lost_since = self._lost_at = None
        self.error = ""
        self.unserved = False
        self._tried.set()

    def _lost(self, cause: errors.KubeError) -> None:
        # Its words, not itself: an exception holds on to all that was on the way.
        self.error, self._blind = str(cause), cause.blind
        self.unserved = isinstance(cause, errors.NotFound)
        self.fresh_since = None
        if self.lost_since is None:
            self.lost_since = self._clock.now()
            self._lost_at = self._clock.monotonic()
        self._tried.set()

    def _lose(self, cause: errors.KubeError) -> float:
        """The seconds to wait before the next attempt."""
        if self.lost_since is None:
            _log.info("does not follow", cache=str(self), error=str(cause))
        self._lost(cause)
        self._tell_of_loss()
        if isinstance(cause, errors.Closed):
            # Nothing was sent, so it is no failure; when the gate opens it is time.
            return cause.again.total_seconds() * (1 + self._rng.random() / 10)
        self._failures += 1
        if isinstance(cause, errors.Gone) and self._failures == 1:
            return 0
        # 2**6 seconds are more than the longest wait.
        longest = min(FIRST_WAIT * 2 ** min(self._failures - 1, 6), LONGEST_WAIT)
        least = cause.retry_after if isinstance(cause, errors.TooMany) else 0
        return max(longest * (0.5 + self._rng.random() / 2), min(least, LONGEST_RETRY_AFTER))

    # What the server says.

    async def _list(self, *, whole: bool) -> Listing:
        # Versions of a server that is behind may mean something else there.
        if whole or self._behind_since is not None:
            return await self._client.list(
                self._kind, self._namespace, managed=self._managed_fields, room=self._room
            )
        of, known, managed = self._kind, self._objects, self._managed_fields
        return await self._client.list_again(
            of, self._namespace, known=known, managed=managed, room=self._room
        )

    async def _take_all(self, listing: Listing, seen: str, *, moved: bool) -> None:
        """`seen` is the newest version that was known when the list was asked for. Others run in
        between; to them it is as if a watch had told it. `moved`: to another version of the API."""
        found = {item.key: item for item in listing.items}
        rewritten = self._rewritten(listing.version, seen)
        if rewritten:
            self._buried.clear()
            seen = self._seen = ""
        before = dict(self._objects)
        for key, old in before.items():
            # What we wrote while the list was on its way is newer than the list. Versions of
            # another server mean nothing here: its absences are as real as any.
            if key not in found and not (seen and slim.older(listing.version, old.version)):
                self._remove(key)
        if self._stranger:
            self._buried.clear()
        for number, (key, item) in enumerate(found.items()):
            if number and number % PIECE == 0:
                await asyncio.sleep(0)
            # A rewritten history has older versions of all; but not of what is written just now.
            old = self._objects.get(key)
            if old is not item:
                self._put(item, anew=(rewritten or moved) and old is before.get(key))
        self._seen = listing.version if self._stranger else slim.newer(self._seen, listing.version)
        self._count()
        self._version = listing.version
        self._stranger = False
        self._listed_kind = self._kind
        self._listed_at = self._clock.monotonic()

    def _rewritten(self, version: str, seen: str) -> bool:
        """Raises if the server is behind what it said before. True: it has been for so long that
        it will not catch up, and is to be believed."""
        if not slim.older(version, seen):
            self._behind_since = None
            return False
        if self._behind_since is None:
            self._behind_since = self._clock.monotonic()
        if self._clock.monotonic() - self._behind_since < REWRITTEN.total_seconds():
            raise errors.Unreachable(
                f"the server is at version {version}, but {seen} was seen before"
            )
        return True

    def _take(self, change: Change) -> None:
        obj = change.object
        match change.type:
            case "ADDED" | "MODIFIED":
                self._put(obj)
            case "DELETED":
                self._remove(obj.key, obj.uid)
            case _:
                pass
        if obj.version:
            if self._seen == self._version:
                self._seen = self._version = slim.newer(self._version, obj.version)
            else:
                self._version = slim.newer(self._version, obj.version)
                self._seen = slim.newer(self._seen, obj.version)

    def _put(self, obj: Slim, *, anew: bool = False) -> None:
        """`anew`: whatever was there before, and of whichever version."""
        if obj.uid in self._buried:
            return
        key = obj.key
        old = self._objects.get(key)
        if old is None:
            self._order = None
        elif old.uid != obj.uid:
            self._buried.add(old.uid)
        elif not anew and (obj.version == old.version or slim.older(obj.version, old.version)):
            return
        self._objects[key] = obj
        self._readers.changed(key)

    def _remove(self, key: Key, uid: str = "") -> None:
        """Whoever has another uid is a later object of the same name, and stays."""
        old = self._objects.get(key)
        self._buried.add(uid or (old.uid if old is not None else ""))
        if old is not None and uid in ("", old.uid):
            del self._objects[key]
            self._order = None
            self._readers.changed(key)

    def _tell_of_loss(self) -> None:
        """Nobody looks often at what a watch tells of: who read here learns at once that nothing
        is told any more. Whoever looks then reads no more, so each is told once."""
        if self.lost_for <= LAG:
            return
        self._readers.told_all()
