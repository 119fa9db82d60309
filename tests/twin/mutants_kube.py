"""
Planted bugs in what fleetd knows of Kubernetes: caches, clients, and the driver made of objects.

Most are of the largest class that was ever found in controllers: decisions on a state that is old,
or half of one. A mutant changes one thing, in the way somebody would have written it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fleetd import objects
from fleetd.gate import Gate
from fleetd.kube import cache, clusters, errors, facts, fights, pages
from fleetd.vocabulary import Observation, Step
from topology.resource import Facts, Resource

# -- A state that is old ---------------------------------------------------------------------


def goes_back_in_time(patch: pytest.MonkeyPatch) -> None:
    """Whatever the last list says is the truth, also when the server lags behind."""

    async def take_all(self: Any, listing: Any, _: str, *, moved: bool) -> None:
        del moved
        for key in list(self._objects):
            del self._objects[key]
            self._changed(key)
        self._order = None
        for item in listing.items:
            self._put(item)
        self._version = self._seen = listing.version
        self._listed_at = self._clock.monotonic()

    patch.setattr(cache.Cache, "_take_all", take_all)


def expired_is_skipped(patch: pytest.MonkeyPatch) -> None:
    """After 410 it watches from the newest version on, without a list."""
    real = cache.Cache._session

    async def session(self: Any) -> errors.KubeError | None:
        cause = await real(self)
        if isinstance(cause, errors.Gone):
            self._version = await self._client.version(self._kind, self._namespace)
        return cause

    patch.setattr(cache.Cache, "_session", session)


def deletions_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """An event of type DELETED is taken for one more change."""
    real = cache.Cache._take

    def take(self: Any, change: Any) -> None:
        if change.type != "DELETED":
            real(self, change)

    patch.setattr(cache.Cache, "_take", take)


def first_page_is_all(patch: pytest.MonkeyPatch) -> None:
    """Does not go on where the server says that there is more."""
    for name in ("page", "short"):
        patch.setattr(pages, name, _only_one(getattr(pages, name)))


def _only_one(real: Any) -> Any:
    def page(response: Any, path: str) -> Any:
        found = real(response, path)
        found.metadata.more = ""
        return found

    return page


def silence_goes_unnoticed(patch: pytest.MonkeyPatch) -> None:
    """A watch that says nothing is thought to have nothing to say."""
    patch.setattr(cache, "STALL", 1e9)


def a_lost_cache_speaks_on(patch: pytest.MonkeyPatch) -> None:
    """What was seen last is told, however long ago the server was lost."""
    patch.setattr(cache.Cache, "check", _nothing)


def own_writes_are_not_noted(patch: pytest.MonkeyPatch) -> None:
    """The next look reads what was there before fleetd's own write."""
    patch.setattr(clusters._Caches, "wrote", _nothing)


def generations_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """A status counts, though it speaks of an older version of what was asked."""
    real = facts.trim

    def trim(obj: Any) -> dict[str, Any]:
        kept = real(obj)
        if "observedGeneration" in kept.get("status", {}):
            newest = kept["metadata"]["generation"]
            kept["status"] = {**kept["status"], "observedGeneration": newest}
        return kept

    patch.setattr(facts, "trim", trim)


def unknown_is_absent(patch: pytest.MonkeyPatch) -> None:
    """Takes "could not look" for "is not there"."""
    real = objects.ObjectDriver.observe

    async def observe(self: Any, want: Resource) -> Observation:
        seen = await real(self, want)
        return (
            replace(seen, facts={})
            if seen.facts is None and "no kubeconfig" not in seen.error
            else seen
        )

    patch.setattr(objects.ObjectDriver, "observe", observe)


# -- A state that nobody saw -----------------------------------------------------------------


def written_once_is_written(patch: pytest.MonkeyPatch) -> None:
    """Remembers what it has applied, and does not apply it again."""
    writes, apply = objects.ObjectDriver._writes, objects.ObjectDriver._apply
    sent: set[str] = set()

    def remembering(self: Any, want: Resource, seen: Facts) -> Sequence[Step]:
        return [step for step in writes(self, want, seen) if step.id not in sent]

    async def sending(self: Any, step: Step) -> None:
        await apply(self, step)
        sent.add(step.id)

    patch.setattr(objects.ObjectDriver, "_writes", remembering)
    patch.setattr(objects.ObjectDriver, "_apply", sending)


def progress_in_memory(patch: pytest.MonkeyPatch) -> None:
    """Only what this very process applied is known to be there."""
    writes, apply = objects.ObjectDriver._writes, objects.ObjectDriver._apply

    def remembering(self: Any, want: Resource, seen: Facts) -> Sequence[Step]:
        done: set[str] = self.__dict__.setdefault("done", set())
        parts = {key: one for key, one in seen.get("parts", {}).items() if key in done}
        return writes(self, want, {**seen, "parts": parts})

    async def sending(self: Any, step: Step) -> None:
        await apply(self, step)
        meta = step.args["manifest"]["metadata"]
        where = f"{meta['namespace']}/" if meta.get("namespace") else ""
        done: set[str] = self.__dict__.setdefault("done", set())
        done.add(f"{step.args['manifest']['kind']} {where}{meta['name']}")

    patch.setattr(objects.ObjectDriver, "_writes", remembering)
    patch.setattr(objects.ObjectDriver, "_apply", sending)


# -- Others who write too --------------------------------------------------------------------


def fights_without_end(patch: pytest.MonkeyPatch) -> None:
    """What another keeps changing is put right each time, without end."""

    def never(part: Any) -> bool:
        del part
        return False

    patch.setattr(fights, "given_up", never)


def compared_to_the_letter(patch: pytest.MonkeyPatch) -> None:
    """What the server filled in, or wrote in another way, is a difference as well."""

    def compare(wanted: Any, live: Any, path: str, found: list[str]) -> None:
        if wanted != live:
            found.append(path)

    patch.setattr(facts, "_compare", compare)


def sent_again_at_once(patch: pytest.MonkeyPatch) -> None:
    """A server that says "later" is asked again now, by everybody."""
    real, heard = cache.Cache._lose, Gate.heard

    def lose(self: Any, cause: errors.KubeError) -> float:
        wait = real(self, cause)
        return 0.0 if isinstance(cause, errors.TooMany) else wait

    def deaf(self: Any, status: int, headers: Any) -> None:
        del headers
        heard(self, status, {})

    patch.setattr(cache.Cache, "_lose", lose)
    patch.setattr(Gate, "heard", deaf)


def _nothing(*_: Any, **__: Any) -> None:
    """Instead of something."""
