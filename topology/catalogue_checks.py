"""
What the components of a catalogue say about each other and about themselves, checked.

Pure; all problems at once. Links are checked per role, because a component that stands on five
roles may need one that stands on four; `optional` is the way to say that this is meant. The
order of things is checked the same way: `cluster` may need `cluster` on another role without
going round in a circle.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from topology import catalogue_credentials, catalogue_fields, catalogue_rules, graph, health
from topology.catalogue import (
    FIELD,
    PLACEHOLDER,
    PLACEHOLDERS,
    Component,
    Health,
    HealthProfile,
    Link,
    On,
    Scope,
    StateLimit,
    When,
)
from topology.checks.spelling import Speller
from topology.documents.cluster import Role
from topology.load import Bundle, Item
from topology.problem import Problem
from topology.yamlevents import Path

Node = tuple[str, str]
"""A component and a role; no role where it does not stand on clusters of its own."""

_ON_CLUSTERS = (Scope.CLUSTER, Scope.CLUSTER_DOCUMENT)
_ROLE_OF_SCOPE = {
    Scope.CLOUD: Role.CONTROL_PLANE,
    Scope.CLOUD_DOCUMENT: Role.CONTROL_PLANE,
    Scope.CLOUD_HYPERVISOR: Role.HYPERVISOR,
    Scope.CLOUD_STORAGE: Role.STORAGE,
    Scope.CEPH_POOL: Role.STORAGE,
}
_ROLE_OF_ON = {
    On.MANAGEMENT: Role.MANAGEMENT,
    On.CONTROL_PLANE: Role.CONTROL_PLANE,
    On.HYPERVISOR: Role.HYPERVISOR,
    On.STORAGE: Role.STORAGE,
    On.ARBITER: Role.ARBITER,
}
_HAS = {
    "cluster": (*_ON_CLUSTERS, *_ROLE_OF_SCOPE),
    "cloud": (Scope.CLOUD, Scope.CLOUD_DOCUMENT, Scope.CLOUD_HYPERVISOR, Scope.CLOUD_STORAGE),
    "pool": (Scope.CEPH_POOL,),
    "server": (Scope.SERVER,),
}
"""Scopes in which a placeholder has a meaning; those not named have one everywhere."""
_HAS_POOL = (Scope.CEPH_POOL, Scope.SERVERPOOL, Scope.SERVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A component with its profile written in, and where it stands."""

    component: Component
    item: Item


def check(
    bundle: Bundle,
    entries: Mapping[str, Entry],
    profiles: Mapping[str, Item],
    drivers: frozenset[str],
) -> list[Problem]:
    """All that is wrong. `drivers` are those of the components that come with fleetd."""
    work = _Work(bundle, entries, profiles, drivers)
    for name in sorted(profiles):
        work.profile(profiles[name])
    for name in sorted(entries):
        work.placement(entries[name])
        work.health(entries[name])
        work.limits(entries[name])
        work.placeholders(entries[name])
        work.links(entries[name])
    work.credentials()
    if not work.found:
        # A circle through a link that is wrong anyway would only confuse.
        work.circles()
    return work.found


@dataclass(slots=True)
class _Work:
    bundle: Bundle
    entries: Mapping[str, Entry]
    profiles: Mapping[str, Item]
    drivers: frozenset[str]
    found: list[Problem] = field(default_factory=list[Problem])
    speller: Speller = field(default_factory=Speller)

    def say(self, of: Entry | Item, path: Path, code: str, message: str, hint: str) -> None:
        item = of.item if isinstance(of, Entry) else of
        self.found.append(self.bundle.complain(item, path, code=code, message=message, hint=hint))

    def profile(self, item: Item) -> None:
        written = cast("HealthProfile", item.document).spec.health
        self._readable(item, written)
        if written.like is not None:
            self.say(
                item,
                ("spec", "health", "like"),
                "profile-of-profile",
                "a profile cannot be like another",
                "write its rules out",
            )

    def _readable(self, of: Entry | Item, written: Health) -> None:
        for fault in catalogue_rules.faults(written):
            self.say(of, *fault)

    def placement(self, entry: Entry) -> None:
        spec = entry.component.spec
        if spec.roles and spec.scope is not Scope.CLUSTER:
            self.say(
                entry,
                ("spec", "roles"),
                "roles-without-clusters",
                f"scope {spec.scope} does not place it on clusters by their role",
                "remove roles, or use scope cluster",
            )
        for index, when in enumerate(spec.when):
            if not when.any_of and when.present is None:
                self.say(
                    entry,
                    ("spec", "when", index),
                    "when-empty",
                    f"it does not say what {when.field} must be",
                    "add anyOf: [...], or present: true",
                )
            self._when(entry, ("spec", "when", index), when)
        known = catalogue_fields.told(spec.scope, spec.roles)
        for index, word in enumerate(spec.told):
            if word not in known:
                self.say(
                    entry,
                    ("spec", "told", index),
                    "told-nothing",
                    f"no document has {word} for where it stands",
                    f"remove it; there is {', '.join(known) or 'nothing to tell'}",
                )
        self._driver(entry)

    def _when(self, entry: Entry, path: Path, when: When) -> None:
        scope = entry.component.spec.scope
        if when.field.startswith("pool.") and scope not in _HAS_POOL:
            self.say(
                entry,
                (*path, "field"),
                "field-unknown",
                f"there is no pool in scope {scope}",
                "use storage.ceph.pools, or scope ceph-pool",
            )
            return
        possible = self._field(entry, (*path, "field"), when.field)
        if possible is None:
            return
        for index, value in enumerate(when.any_of):
            if value not in possible:
                known = [str(one) for one in possible]
                self.say(
                    entry,
                    (*path, "anyOf", index),
                    "value-unknown",
                    f"{when.field} is never {value!r}",
                    self.speller.hint(str(value), known, "remove it"),
                )

    def _field(self, entry: Entry, path: Path, field: str) -> tuple[object, ...] | None:
        """The values a field of the documents can have, and a complaint if there is none."""
        try:
            return catalogue_fields.values(field, entry.component.spec.scope)
        except catalogue_fields.Unknown as lost:
            self.say(
                entry,
                path,
                "field-unknown",
                f"there is no field {lost.part!r} in {field}",
                self.speller.hint(lost.part, lost.known, "see docs/documents.md"),
            )
            return None

    def _driver(self, entry: Entry) -> None:
        """A driver of somebody's own is welcome; one that is nearly a known one is a slip."""
        driver = entry.component.spec.driver
        known = driver in self.drivers
        guess = None if known else self.speller.nearest(driver, self.drivers)
        if guess is not None:
            self.say(
                entry,
                ("spec", "driver"),
                "driver-unknown",
                f"no component that comes with fleetd has a driver {driver!r}",
                f"did you mean {guess!r}? If not, give yours a name that is less like it",
            )

    def health(self, entry: Entry) -> None:
        written = cast("Component", entry.item.document).spec.health
        merged = entry.component.spec.health
        if written.like is not None and written.like not in self.profiles:
            self.say(
                entry,
                ("spec", "health", "like"),
                "profile-unknown",
                f"there is no HealthProfile {written.like!r}",
                self.speller.hint(written.like, self.profiles, "write the rules out"),
            )
            return
        self._readable(entry, written)
        if not merged.healthy:
            self.say(
                entry,
                ("spec", "health"),
                "never-healthy",
                "there is no rule by which it is healthy",
                "add healthy: [{when: [...]}], or like: <a profile>",
            )
        watched = merged.object
        named = watched is not None and watched.kind is not None and watched.name is not None
        if merged.source == "kubernetes" and not named:
            self.say(
                entry,
                ("spec", "health", "object"),
                "object-missing",
                "it does not say which object tells its health",
                "add object: {group, kind, namespace, name}",
            )
        if merged.source not in ("kubernetes", "metal") and watched is not None:
            self.say(
                entry,
                ("spec", "health", "object"),
                "object-unused",
                f"source {merged.source} reads no object of a cluster",
                "remove object, or use source kubernetes",
            )

    def limits(self, entry: Entry) -> None:
        if (entry.component.spec.health.like or "") not in {"", *self.profiles}:
            return  # its states and limits are in a profile that is not there
        written = cast("Component", entry.item.document).spec.limits
        states = [limit.state for limit in entry.component.spec.limits]
        if "*" not in states:
            self.say(
                entry,
                ("spec", "limits"),
                "limit-missing",
                "there is no limit for the states without one of their own",
                'add {state: "*", within: 30m, action: what to do}',
            )
        known = health.reasons(entry.component.spec.health)
        seen: set[str] = set()
        for index, limit in enumerate(written):
            self._limit(entry, index, limit, known, seen)
            seen.add(limit.state)

    def _limit(
        self, entry: Entry, index: int, limit: StateLimit, known: frozenset[str], seen: set[str]
    ) -> None:
        path: Path = ("spec", "limits", index, "state")
        if limit.state in seen:
            self.say(
                entry,
                path,
                "limit-twice",
                f"there are two limits for state {limit.state}",
                "keep one of them",
            )
        if limit.state != "*" and limit.state not in known:
            self.say(
                entry,
                path,
                "state-unknown",
                f"no rule of its health gives the state {limit.state}",
                self.speller.hint(limit.state, known, "add a rule with that reason"),
            )
        if PLACEHOLDER.search(limit.action):
            self.say(
                entry,
                ("spec", "limits", index, "action"),
                "placeholder-unused",
                "an action is the same for all instances; braces are not filled in here",
                "write <cluster> for what the reader must put in",
            )

    def placeholders(self, entry: Entry) -> None:
        scope = entry.component.spec.scope
        for path, text in _texts(entry.component):
            for words in PLACEHOLDER.findall(text):
                head = words.partition(".")[0]
                fine = words in PLACEHOLDERS or FIELD.fullmatch(words)
                if fine and scope in _HAS.get(head, (scope,)):
                    if "." in words:
                        self._field(entry, path, words)
                    continue
                why = f"{{{words}}} means nothing"
                if fine:
                    why += f" in scope {scope}"
                here = [p for p in PLACEHOLDERS if scope in _HAS.get(p, (scope,))]
                self.say(
                    entry,
                    path,
                    "placeholder-unknown",
                    why,
                    f"use one of {', '.join('{' + p + '}' for p in here)}",
                )

    def links(self, entry: Entry) -> None:
        spec = entry.component.spec
        for kind, links in (("needs", spec.needs), ("feeds", spec.feeds)):
            seen: set[tuple[str, On]] = set()
            for index, link in enumerate(links):
                self._link(entry, ("spec", kind, index), link, seen)
                seen.add((link.component, link.on))
        needed = {link.component for link in spec.needs}
        for index, name in enumerate(spec.outlives):
            place: Path = ("spec", "outlives", index)
            if name not in self.entries:
                hint = self.speller.hint(name, self.entries, "add its file to the catalogue")
                self.say(entry, place, "component-unknown", f"there is no component {name!r}", hint)
            elif name in needed:
                why = f"it needs {name}, so it cannot outlive it"
                self.say(entry, place, "outlives-what-it-needs", why, "remove one of the two")

    def _link(self, entry: Entry, path: Path, link: Link, seen: set[tuple[str, On]]) -> None:
        place: Path = (*path, "component")
        other = self.entries.get(link.component)
        if other is None:
            self.say(
                entry,
                place,
                "component-unknown",
                f"there is no component {link.component!r}",
                self.speller.hint(link.component, self.entries, "add its file to the catalogue"),
            )
            return
        if (link.component, link.on) in seen:
            self.say(
                entry,
                place,
                "link-twice",
                f"{link.component} on {link.on} is named twice",
                "keep one of them",
            )
        if link.component == entry.item.name and link.on is On.SAME:
            self.say(entry, place, "needs-itself", "it would wait for itself", "remove the link")
        if not link.optional:
            missing = sorted(set(_wanted(entry, link, other)) - set(_roles(other.component)))
            if missing:
                self.say(
                    entry,
                    place,
                    "component-not-there",
                    f"{link.component} does not stand on a cluster of role {missing[0]}",
                    _elsewhere(other.component, link)
                    + "add optional: true if that is meant, or the role to that component",
                )

    def credentials(self) -> None:
        components = {name: self.entries[name].component for name in sorted(self.entries)}

        def say(name: str, path: Path, code: str, message: str, hint: str) -> None:
            self.say(self.entries[name], path, code, message, hint)

        catalogue_credentials.check(components, self.speller, say)

    def circles(self) -> None:
        needs = needs_by_role({name: e.component for name, e in self.entries.items()})
        circle = graph.cycle(needs)
        if circle is None:
            return
        first, second = circle[0], circle[1 % len(circle)]
        entry = self.entries[first[0]]
        links = entry.component.spec.needs
        index = next(i for i, link in enumerate(links) if link.component == second[0])
        shown = " needs ".join(_shown(node) for node in (*circle, first))
        self.say(
            entry,
            ("spec", "needs", index, "component"),
            "needs-in-a-circle",
            f"{shown}: none of them can ever be first",
            "remove one of these needs",
        )


def needs_by_role(components: Mapping[str, Component]) -> dict[Node, set[Node]]:
    """What needs what, for each role a component stands on."""
    found: dict[Node, set[Node]] = {}
    for name, component in components.items():
        for role in _roles(component) or ("",):
            below = found.setdefault((name, role), set())
            for link in component.spec.needs:
                other = components.get(link.component)
                if other is not None:
                    below.update(_targets(component, role, link, other))
            below.discard((name, role))
    return found


def _targets(component: Component, role: str, link: Link, other: Component) -> Iterator[Node]:
    there = _roles(other)
    if not there:
        yield (link.component, "")
        return
    for wanted in _reached(component, role, link, there):
        if wanted in there:
            yield (link.component, wanted)


def _reached(
    component: Component, role: str, link: Link, there: tuple[Role, ...]
) -> tuple[Role, ...]:
    """The roles a link leads to."""
    if link.on is On.REGION:
        return there
    if link.on is On.SAME:
        own = Role(role) if role else _ROLE_OF_SCOPE.get(component.spec.scope)
        return there if own is None else (own,)
    if role == Role.MANAGEMENT and link.on is not On.MANAGEMENT:
        return ()  # a management cluster belongs to no cloud
    return (_ROLE_OF_ON[link.on],)


def _wanted(entry: Entry, link: Link, other: Entry) -> Iterator[Role]:
    """The roles on which the other component has to stand for the link to lead somewhere."""
    there = _roles(other.component)
    if there:
        for role in _roles(entry.component) or ("",):
            yield from _reached(entry.component, role, link, there)


def _elsewhere(other: Component, link: Link) -> str:
    """Where it does stand, if that is one role and the link has not named it."""
    there = _roles(other)
    if len(there) != 1 or link.on == there[0]:
        return ""
    return f"write on: {there[0]}; otherwise "


def _roles(component: Component) -> tuple[Role, ...]:
    """The roles it stands on; none where it does not stand on clusters by role."""
    spec = component.spec
    if spec.scope not in _ON_CLUSTERS:
        return ()
    return tuple(spec.roles) or tuple(Role)


def _shown(node: Node) -> str:
    return f"{node[0]} ({node[1]})" if node[1] else node[0]


def _texts(component: Component) -> Iterator[tuple[Path, str]]:
    """Every text in which placeholders are filled in."""
    spec = component.spec
    watched = spec.health.object
    if watched is not None:
        for key, text in (("namespace", watched.namespace), ("name", watched.name)):
            if text is not None:
                yield ("spec", "health", "object", key), text
    for key, text in (("namespace", spec.install.namespace), ("name", spec.install.name)):
        if text is not None:
            yield ("spec", "install", key), text
    for index, make in enumerate(spec.makes):
        for key, text in (("path", make.path), ("secret", make.secret)):
            if text is not None:
                yield ("spec", "makes", index, key), text
    yield from _nested(("spec", "parameters"), spec.parameters)


def _nested(path: Path, value: object) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, Any]", value).items():
            yield from _nested((*path, key), inner)
    elif isinstance(value, list):
        members: Iterable[object] = cast("list[Any]", value)
        for index, inner in enumerate(members):
            yield from _nested((*path, index), inner)
