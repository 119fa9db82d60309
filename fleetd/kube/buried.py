"""
Who was deleted, so that a late word of him does not bring him back. The one rule: the oldest are
forgotten, because what is told late is not told for ever.
"""

from collections import OrderedDict

MOST = 4096


class Buried:
    __slots__ = ("_uids",)

    def __init__(self) -> None:
        self._uids: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids

    def add(self, uid: str) -> None:
        """Of nobody in particular, where it is empty."""
        if uid:
            self._uids[uid] = None
            if len(self._uids) > MOST:
                self._uids.popitem(last=False)

    def clear(self) -> None:
        self._uids.clear()
