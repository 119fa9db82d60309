"""
The catalogue as it is used: the built-in files and the operator's, merged and checked.

Reads through `topology.load`, so a complaint has file, line and column like that of any document.
The rule to know: an operator's file may bring anything new, but takes the place of a built-in
component or profile only if it says so, with the annotation `fleet.c5c3.io/replaces: <name>`.
A typing error in a name must not silently replace OpenBao.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from topology import catalogue_checks
from topology import load as documents
from topology.catalogue import Component, Health, HealthProfile, StateLimit, Watched
from topology.catalogue_checks import Entry
from topology.checks.spelling import Speller
from topology.documents.base import Document
from topology.load import Bundle, Item
from topology.problem import Problem

BUILT_IN = Path(__file__).parent / "catalog"
REPLACES = "fleet.c5c3.io/replaces"
KINDS: Mapping[str, type[Document]] = {"Component": Component, "HealthProfile": HealthProfile}


def load(paths: Sequence[Path] = ()) -> tuple[Mapping[str, Component], list[Problem]]:
    """All components by name, with the rules and limits of their profiles written into them, and
    everything that is wrong. Nothing may be done with a catalogue that has a problem."""
    own = documents.load([BUILT_IN], KINDS)
    given = documents.load(paths, KINDS)
    bundle = documents.Bundle(
        items=(*own.items, *given.items),
        problems=(*own.problems, *given.problems),
        sources={**own.sources, **given.sources},
        refused=(*own.refused, *given.refused),
    )
    problems = list(bundle.problems)
    kept, twice = _choose(bundle, built_in=len(own.items))
    problems += twice
    profiles = {item.name: item for item in kept if isinstance(item.document, HealthProfile)}
    shared = {name: cast("HealthProfile", item.document) for name, item in profiles.items()}
    entries: dict[str, Entry] = {}
    for item in kept:
        if isinstance(item.document, Component):
            component = expand(item.document, shared)
            entries[item.name] = Entry(component=component, item=item)
    drivers = {i.document.spec.driver for i in own.items if isinstance(i.document, Component)}
    problems += catalogue_checks.check(bundle, entries, profiles, frozenset(drivers))
    return {name: entries[name].component for name in sorted(entries)}, sorted(problems)


def expand(component: Component, profiles: Mapping[str, HealthProfile]) -> Component:
    """A component with the rules and limits of its profile after its own."""
    spec = component.spec
    profile = profiles.get(spec.health.like or "")
    if profile is None:
        return component
    shared = profile.spec.health
    own = spec.health
    health = own.model_copy(
        update={
            "source": shared.source,
            "object": _watched(own, shared),
            "failed": [*own.failed, *shared.failed],
            "progressing": [*own.progressing, *shared.progressing],
            "healthy": [*own.healthy, *shared.healthy],
        }
    )
    update = {"health": health, "limits": _limits(spec.limits, profile.spec.limits)}
    return component.model_copy(update={"spec": spec.model_copy(update=update)})


def _watched(own: Health, shared: Health) -> Watched | None:
    if own.object is None or shared.object is None:
        return own.object or shared.object
    given = own.object.model_dump(exclude_unset=True)
    return shared.object.model_copy(update=given)


def _limits(own: Sequence[StateLimit], shared: Sequence[StateLimit]) -> list[StateLimit]:
    known = {limit.state for limit in own}
    return [*own, *(limit for limit in shared if limit.state not in known)]


def _choose(bundle: Bundle, *, built_in: int) -> tuple[list[Item], list[Problem]]:
    """One item per kind and name, and complaints about the others."""
    kept: dict[tuple[str, str], Item] = {}
    problems: list[Problem] = []
    for position, item in enumerate(bundle.items):
        key = (item.kind, item.name)
        first = kept.get(key)
        replaces = item.document.metadata.annotations.get(REPLACES)
        known = [name for kind, name in kept if kind == item.kind]
        if replaces is not None and (position < built_in or replaces != item.name or not first):
            problems.append(_bad_replaces(bundle, item, replaces, known))
        elif first is not None and replaces is None:
            problems.append(_twice(bundle, item, first))
            continue
        kept[key] = item
    return list(kept.values()), problems


def _twice(bundle: Bundle, item: Item, first: Item) -> Problem:
    return bundle.complain(
        item,
        ("metadata", "name"),
        code="component-twice",
        message=f"there is a {item.kind} {item.name!r} in {first.file} already",
        hint=f"take another name, or say with the annotation {REPLACES}: {item.name} that this "
        "one is meant instead",
    )


def _bad_replaces(bundle: Bundle, item: Item, replaces: str, known: Sequence[str]) -> Problem:
    if replaces != item.name:
        message = f"{replaces!r} is not the name of this {item.kind}"
        hint = f"give it the name {replaces!r}, or remove the annotation"
    else:
        message = f"there is no {item.kind} {replaces!r} to replace"
        hint = Speller().hint(replaces, known, "remove the annotation")
    return bundle.complain(
        item,
        ("metadata", "annotations", REPLACES),
        code="replaces-unknown",
        message=message,
        hint=hint,
    )
