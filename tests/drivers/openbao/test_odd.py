"""OpenBao that answers oddly, odd names, and what changed between the look and the deed."""

import re
from dataclasses import replace
from typing import Any

import pytest

from drivers.openbao import client
from drivers.openbao.access import Access
from fleetd.sim.world import HttpRequest, HttpResponse
from fleetd.vocabulary import Done, Failed
from tests.drivers.openbao.stage import Stage
from tests.drivers.openbao.test_conformance import mariadb
from tests.drivers.openbao.test_setup import ADMIN, mount, played

ODD = ("garage/s3#old", "garage/a?version=1", "garage/50% off", "garage/with space")


@pytest.mark.parametrize("odd", ODD)
def test_a_name_with_odd_characters_is_that_name(odd: str) -> None:
    """What follows `#` or `?` is no other path's end: the one beside it stays, and its own goes."""

    async def story(there: Stage) -> None:
        await there.opened()
        secrets = there.want("openbao-secrets", "cp")
        await there.follow(secrets)
        entries = mount(there, "kv-v2/").entries
        path = f"bootstrap/openstack-cp/{odd}"
        short = re.split(r"[#?% ]", path)[0]
        entries[short] = replace(entries[ADMIN], custom={})
        entries[path] = replace(entries[ADMIN], custom={"fleetd-made": secrets.ref.name})
        gone = replace(secrets, absent=True, needs=frozenset())
        for step in await there.proposed(gone):
            assert await there.driver(secrets).apply(step) == Done()
        assert (short in entries, path in entries) == (True, False)

    played(story)


def test_a_path_never_climbs() -> None:
    """A client on the way would shorten it to somebody else's path."""

    async def story(there: Stage) -> None:
        await there.opened()
        access = Access(there.tools)
        for path in ("a/../b", "./a", ".."):
            with pytest.raises(client.Refused, match="is no path"):
                await access.ask(
                    there.want("openbao"), lambda bao, path=path: bao.metadata("kv-v2", path)
                )

    played(story)


@pytest.mark.parametrize("change", ["another version", "another maker"])
def test_a_secret_that_changed_since_the_look_is_not_deleted(change: str) -> None:
    """Somebody wrote it, or took it over, between the approval and the deed."""

    async def story(there: Stage) -> None:
        await there.opened()
        secrets = there.want("openbao-secrets", "cp")
        await there.follow(secrets)
        gone = replace(secrets, absent=True, needs=frozenset())
        (step,) = [one for one in await there.proposed(gone) if one.args["path"] == ADMIN]
        entry = mount(there, "kv-v2/").entries[ADMIN]
        if change == "another version":
            entry.versions[2] = replace(entry.versions[1])
            entry.current = 2
        else:
            entry.custom = {"fleetd-made": "somebody"}
        outcome = await there.driver(secrets).apply(step)
        assert isinstance(outcome, Failed)
        assert (outcome.reason, outcome.retry) == ("Changed", True)
        assert ADMIN in mount(there, "kv-v2/").entries

    played(story)


def test_a_login_that_somebody_else_mounted_stays() -> None:
    """It is at the path that fleetd would use, without its mark; also if the mark goes only after
    the look."""

    async def story(there: Stage) -> None:
        await there.opened()
        auth = there.want("openbao-auth", "cp")
        await there.follow(auth)
        gone = replace(auth, absent=True, needs=frozenset())
        (step,) = [one for one in await there.proposed(gone) if one.verb == "unmount-auth"]
        there.bao.data.mounts["auth/kubernetes/cp/"].description = "ours, by hand"
        done = await there.driver(auth).apply(step)
        after = [one.verb for one in await there.proposed(gone)]
        assert done == Done()
        assert "unmount-auth" not in after
        assert "auth/kubernetes/cp/" in there.bao.data.mounts

    played(story)


def test_a_role_that_leads_to_another_database_stays() -> None:
    """Of the same name, but it was written anew for another connection since the look."""

    async def story(there: Stage) -> None:
        await there.opened()
        await there.follow(there.want("openbao-secrets", "cp"))
        database = there.want("openbao-database", "prod")
        mariadb(there, "cp")
        await there.follow(database)
        gone = replace(database, absent=True, needs=frozenset())
        steps = await there.proposed(gone)
        settings = mount(there, "database/mariadb/").settings
        role = next(key for key in settings if key.startswith("roles/"))
        settings[role]["db_name"] = "somebody-elses"
        settings["config/prod"]["connection_url"] = "{{username}}@tcp(elsewhere:3306)/"
        for step in steps:
            assert await there.driver(database).apply(step) == Done()
        assert sorted(settings) == ["config/prod", role]

    played(story)


class _Odd:
    """Answers what is no answer of OpenBao, but to who asks how it is."""

    def __init__(self, inner: Any, answer: HttpResponse) -> None:
        self.inner = inner
        self.answer = answer

    def handle(self, request: HttpRequest) -> HttpResponse:
        if request.path in ("/v1/sys/health", "/v1/sys/storage/raft/configuration"):
            return self.inner.handle(request)
        return self.answer


HTML = {"content-type": "text/html"}
JSON = {"content-type": "application/json"}
ODD_ANSWERS = {
    "redirect": HttpResponse(status=307, body=b"", headers={"location": "https://other/v1/x"}),
    "page": HttpResponse(status=200, body=b"<html>welcome</html>", headers=HTML),
    "404 of a proxy": HttpResponse(status=404, body=b"<html>no route</html>", headers=HTML),
    "404 of another program": HttpResponse(status=404, body=b'{"message": "no"}', headers=JSON),
    "no data": HttpResponse(status=200, body=b"{}", headers=JSON),
    "a list": HttpResponse(status=500, body=b"[1]", headers=JSON),
    "half": HttpResponse(status=200, body=b'{"data": {"ke', headers=JSON),
}


@pytest.mark.parametrize("said", ODD_ANSWERS)
@pytest.mark.parametrize(
    ("kind", "name"),
    [("openbao-engines", "mgmt"), ("openbao-policies", "mgmt"), ("openbao-secrets", "cp")],
)
def test_what_openbao_did_not_say_is_neither_there_nor_absent(
    said: str, kind: str, name: str
) -> None:
    """A redirect, a page of a proxy, a 404 of another program: unknown, and nothing is done; also
    a step ends as not done."""

    async def story(there: Stage) -> None:
        await there.opened()
        one = there.want(kind, name)
        (step, *_) = await there.proposed(there.want("openbao-secrets", "cp"))
        for service, inner in list(there.world.services.items()):
            there.world.services[service] = _Odd(inner, ODD_ANSWERS[said])
        seen = await there.look(one)
        outcome = await there.driver(one).apply(step)
        assert seen.facts is None
        assert "OpenBao" in seen.error
        assert isinstance(outcome, Failed)
        assert outcome.retry

    played(story)
