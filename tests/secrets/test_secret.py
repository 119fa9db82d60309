"""The wrapper gives nothing away, and the registry forgets in the right order."""

import copy
import dataclasses
import json
import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import pydantic
import pytest
import yaml

from fleetd import secrets, settings, vocabulary
from fleetd.plan import view
from fleetd.secrets import Registry, Secret
from fleetd.store import base as store
from fleetd.surface import panel
from tests.secrets import canary
from topology import resource

VALUE = canary.CANARIES["password"]

SHOWS: list[Callable[[Any], str]] = [
    repr,
    str,
    format,
    lambda secret: f"{secret}",
    lambda secret: f"{secret!r:>20}",
    "{:>30}".format,
    lambda secret: "%s" % secret,  # noqa: UP031
    lambda secret: json.dumps({"a": secret}, default=str),
    lambda secret: str([secret]) + str({"a": secret}) + str((secret,)),
    lambda secret: " ".join(dir(secret)),
]

GIVEAWAYS: list[Callable[[Any], object]] = [
    pickle.dumps,
    copy.copy,
    copy.deepcopy,
    json.dumps,
    msgspec.json.encode,
    msgspec.to_builtins,
    yaml.safe_dump,
    yaml.dump,
    hash,
    vars,
    iter,
    len,
    bytes,
    pydantic.TypeAdapter(object).dump_json,
    lambda secret: pydantic.create_model("M", field=(Secret, secret)),
    lambda secret: secret < secret,  # noqa: PLR0124
    lambda secret: secret + "",
    lambda secret: {secret: 1},
    lambda secret: type("Sub", (Secret,), {}),
    lambda secret: secret.__getstate__(),
]


@pytest.mark.parametrize("show", SHOWS)
def test_it_shows_nothing(show: Callable[[Secret], str]) -> None:
    """However it is turned into text, the text is without the value."""
    assert canary.found(show(Secret(VALUE))) == []


@pytest.mark.parametrize("give_away", GIVEAWAYS)
def test_it_refuses(give_away: Callable[[Secret], object]) -> None:
    """What would carry the value off raises, and the error is without it."""
    with pytest.raises(Exception) as refused:  # noqa: PT011 -- each library has its own error
        give_away(Secret(VALUE))
    assert canary.found(repr(refused.value) + str(refused.value)) == []


def test_reveal_gives_the_value() -> None:
    """There is one way in, and it works."""
    assert Secret(VALUE).reveal() == VALUE


def test_equality_is_by_value() -> None:
    """Two wrappers of one value are equal; a wrapper never equals the text itself."""
    assert Secret(VALUE) == Secret(VALUE)
    assert Secret(VALUE) != Secret(VALUE + "x")
    assert Secret(VALUE) != VALUE
    assert Secret(VALUE).matches(VALUE)
    assert not Secret(VALUE).matches("")
    assert not Secret("\udcff").matches("\ud800")


def _dataclasses() -> list[type]:
    modules = (vocabulary, resource, store, settings, panel, view)
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type)
        and dataclasses.is_dataclass(kind)
        and kind.__module__ == module.__name__
    ]


@pytest.mark.parametrize("kind", _dataclasses(), ids=lambda kind: kind.__name__)
def test_nouns_that_carry_one_show_nothing(kind: type) -> None:
    """A secret in any field of any noun does not show when the noun is printed."""
    fields = {
        one.name: Secret(VALUE)
        for one in dataclasses.fields(kind)  # pyright: ignore[reportArgumentType]
        if one.init
    }
    noun = kind(**fields)
    assert canary.found(f"{noun!r} {noun} {dataclasses.fields(noun)}") == []


def test_the_nouns_are_there() -> None:
    """The list above is not empty because a module moved."""
    names = {kind.__name__ for kind in _dataclasses()}
    assert {"Observation", "Step", "Hold", "Event", "Resource", "Intent", "Settings"} <= names


def test_a_cut_value_is_hidden() -> None:
    """The beginning of a long value, cut off by "...", is hidden too."""
    registry = Registry()
    registry.remember(canary.CANARIES["jwt"])
    cut = canary.CANARIES["jwt"][:60]
    assert registry.scrub(f"token {cut}...") == "token <secret>..."


def test_the_longest_match_wins() -> None:
    """Where one value begins like another, the longer is hidden whole."""
    registry = Registry()
    registry.remember("canary-short")
    registry.remember("canary-short-and-long")
    assert registry.scrub("[canary-short-and-long canary-short]") == "[<secret> <secret>]"


def test_short_values_are_let_through() -> None:
    """A value below eight characters is not looked for: it stands in ordinary words."""
    registry = Registry()
    registry.remember("server")
    assert registry.scrub("server/r1-s01") == "server/r1-s01"


def test_common_lines_stay_readable() -> None:
    """A kubeconfig hides its token, not `kind: Config` or the address of the API server."""
    registry = Registry()
    config = canary.CANARIES["kubeconfig"] + "    server: https://api1.garden.example:6443/abc\n"
    registry.remember(config)
    text = "kind: Config users: https://api1.garden.example:6443/abc apiVersion: v1"
    assert registry.scrub(text) == text
    assert registry.scrub("canary0kube1config2token3value4abcdef") == "<secret>"


def test_a_token_inside_of_one_line_is_hidden_alone_too() -> None:
    """A kubeconfig as JSON has no lines; its token still leaks by itself."""
    registry = Registry()
    token = "canary0kube1config2token3value4abcdef"
    registry.remember(json.dumps({"users": [{"user": {"token": token}}], "kind": "Config"}))
    assert registry.scrub(f"args: {token} of Config") == "args: <secret> of Config"


def test_the_memory_is_bounded() -> None:
    """Beyond its bound the registry forgets what was revealed longest ago, and nothing else."""
    registry = Registry(bytes_max=2000)
    for number in range(20):
        registry.remember(f"canary-number-{number:04}")
        registry.remember("canary-kept-alive")
    text = registry.scrub("canary-number-0000 canary-number-0019 canary-kept-alive")
    assert text == "canary-number-0000 <secret> <secret>"


def test_many_values_still_find_each() -> None:
    """With thousands of values, where the search works another way, each is still hidden."""
    registry = Registry()
    for number in range(3000):
        registry.remember(f"{number:06}-canary")
    assert registry.scrub("a 001234-canary b 002999-canary") == "a <secret> b <secret>"
    assert registry.scrub("a 004000-canary") == "a 004000-canary"


def test_revealing_registers() -> None:
    """A value is scrubbed from the moment it was revealed."""
    secrets.REGISTRY.forget()
    secret = Secret(VALUE)
    assert secrets.scrub(VALUE) == VALUE
    secret.reveal()
    assert secrets.scrub(VALUE) == "<secret>"
    secrets.REGISTRY.forget()


def test_a_text_that_was_clean_is_looked_through_again_when_a_value_is_known() -> None:
    """What was said before the value was revealed may be said again after it."""
    registry = Registry()
    registry.remember("canary-of-another-kind")
    assert registry.scrub(f"it said {VALUE}") == f"it said {VALUE}"
    registry.remember(VALUE)
    assert registry.scrub(f"it said {VALUE}") == "it said <secret>"
