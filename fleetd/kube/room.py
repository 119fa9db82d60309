"""
How much of one server is kept in memory: a server that sends without end must not take that of all.

Whoever keeps something of it (an answer under way, a list, a cache) has a part of its room, and
says in large steps how much that is, so that counting costs nothing. The one rule: a room is of one
server, so one that is full is nobody else's trouble.
"""

from fleetd.kube import errors

MIB = 1024 * 1024
MOST = 1024
"""MiB. 300,000 objects of 3 KiB: three times the largest cluster that Kubernetes itself vouches
for."""


class Room:
    def __init__(self, most: int) -> None:
        """Bytes."""
        self.most = most
        self.taken = 0

    def part(self) -> "Part":
        return Part(self)


class Part:
    """What one of those who keep something has of a room."""

    __slots__ = ("_room", "_size")

    def __init__(self, room: Room) -> None:
        self._room = room
        self._size = 0

    def hold(self, size: int) -> bool:
        """So much is kept now. False: that does not fit, and it is as before."""
        room = self._room
        taken = room.taken - self._size + size
        if taken > room.most and size > self._size:
            return False
        room.taken, self._size = taken, size
        return True

    def keep(self, size: int) -> None:
        """The same of objects. Raises `TooMuch`."""
        if not self.hold(size):
            raise errors.TooMuch(
                f"it has more than {self._room.most // MIB} MiB of objects, the most that is kept "
                "of one server; see what fills it, or raise network.kept"
            )

    def leave(self) -> None:
        self.hold(0)
