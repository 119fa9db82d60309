"""What is set up inside of OpenBao: engines, logins, first secrets, database users."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from drivers.openbao import auth
from fleetd.secrets import SecretError
from fleetd.sim import loop
from fleetd.sim.services.openbao.data import Mount
from fleetd.vocabulary import Done, Truth
from tests.drivers.openbao import stage
from tests.drivers.openbao.stage import Stage
from tests.drivers.openbao.test_conformance import mariadb
from tests.drivers.refusals import refusing

ADMIN = "bootstrap/openstack-cp/prod-keystone/admin"


def played(story: Callable[[Stage], Awaitable[None]]) -> None:
    async def run() -> None:
        async with stage.opened() as there:
            await there.follow(there.want("openbao"))
            await story(there)

    loop.run(run())


def mount(there: Stage, path: str) -> Mount:
    return there.bao.data.mounts[path]


def test_an_engine_of_another_type_is_never_replaced() -> None:
    """It is reported, the others are mounted, and what is in it stays."""

    async def story(there: Stage) -> None:
        one = there.want("openbao-engines")
        there.bao.data.mounts["pki/"] = Mount(path="pki/", type="transit", accessor="x")
        steps = await there.do(one)
        judged = await there.ready(one)
        assert sorted(step.args["path"] for step in steps) == [
            "barbican",
            "database/mariadb",
            "kv-v2",
        ]
        assert judged is not None
        assert (judged.truth, judged.reason) == (Truth.FALSE, "WrongEngine")
        assert mount(there, "pki/").type == "transit"

    played(story)


def test_a_kv_engine_of_version_one_is_the_wrong_engine() -> None:
    """The same type is not enough."""

    async def story(there: Stage) -> None:
        there.bao.data.mounts["kv-v2/"] = Mount(path="kv-v2/", type="kv", accessor="x")
        assert (await there.facts(there.want("openbao-engines")))["wrong"] == ["kv-v2"]

    played(story)


def test_a_changed_policy_is_written_again() -> None:
    """PolicyDiffers until it is as generated."""

    async def story(there: Stage) -> None:
        await there.opened()
        one = there.want("openbao-policies")
        there.bao.data.policies["eso-hv"] = 'path "*" { capabilities = ["read"] }'
        judged = await there.ready(one)
        await there.follow(one)
        assert judged is not None
        assert judged.reason == "PolicyDiffers"
        assert "ceph/st/prod/client-nova" in there.bao.data.policies["eso-hv"]

    played(story)


def test_every_role_has_an_audience() -> None:
    """A role that lost it takes any token: that is a failure, and is mended."""

    async def story(there: Stage) -> None:
        await there.opened()
        one = there.want("openbao-auth", "hv")
        await there.follow(one)
        roles = mount(there, "auth/kubernetes/hv/").settings
        missing = [name for name, body in roles.items() if not body.get("audience")]
        roles["role/eso-hv"].pop("audience")
        judged = await there.ready(one)
        await there.follow(one)
        assert missing == ["config"]
        assert judged is not None
        assert (judged.truth, judged.reason) == (Truth.FALSE, "AnyAudience")
        assert roles["role/eso-hv"]["audience"] == auth.AUDIENCE

    played(story)


def test_a_wrong_authority_is_seen_although_logins_still_work() -> None:
    """It is compared by content: a connection that lives proves nothing."""

    async def story(there: Stage) -> None:
        await there.opened()
        one = there.want("openbao-auth", "hv")
        await there.follow(one)
        config = mount(there, "auth/kubernetes/hv/").settings["config"]
        config["kubernetes_ca_cert"] = stage.authority("somebody")
        facts = await there.facts(one)
        judged = await there.ready(one)
        await there.follow(one)
        assert (facts["login"], facts["current"]) == ("works", False)
        assert judged is not None
        assert judged.reason == "OtherCluster"
        after = mount(there, "auth/kubernetes/hv/").settings["config"]
        assert after["kubernetes_ca_cert"] == stage.authority("hv")

    played(story)


def test_a_reviewer_that_lost_its_rights_is_a_refused_login() -> None:
    """And its binding is written again."""

    async def story(there: Stage) -> None:
        await there.opened()
        one = there.want("openbao-auth", "hv")
        await there.follow(one)
        binding = ("rbac.authorization.k8s.io", "ClusterRoleBinding")
        there.world.clusters["hv"].delete(binding, "openbao-token-reviewer")
        judged = await there.ready(one)
        await there.follow(one)
        assert judged is not None
        assert (judged.truth, judged.reason) == (Truth.FALSE, "LoginRefused")

    played(story)


def test_one_refused_login_is_no_news() -> None:
    """The next one works, and nothing is configured anew; a second in a row is believed."""

    async def story(there: Stage) -> None:
        await there.opened()
        one = there.want("openbao-auth", "hv")
        await there.follow(one)
        for times, told in ((1, "works"), (2, "refused")):
            with refusing(there.climate, "openbao-eu-1", "kubernetes/hv/login", times) as refused:
                assert (await there.facts(one))["login"] == told
            assert len(refused) == times

    played(story)


def test_the_reviewers_token_is_replaced_in_time() -> None:
    """Thirty days before it ends, without a login ever being refused."""

    async def story(there: Stage) -> None:
        await there.opened()
        one = there.want("openbao-auth", "hv")
        await there.follow(one)
        first = mount(there, "auth/kubernetes/hv/").settings["config"]["token_reviewer_jwt"]
        await asyncio.sleep(31 * 86400)
        judged = await there.ready(one)
        verbs = [step.verb for step in await there.do(one)]
        later = mount(there, "auth/kubernetes/hv/").settings["config"]["token_reviewer_jwt"]
        assert judged is not None
        assert judged.truth is Truth.TRUE
        assert verbs == ["configure-auth"]
        assert first != later

    played(story)


def test_a_control_plane_gets_the_roles_of_its_operator() -> None:
    """Tenant and database logins, each for its own accounts and with the cluster's audience."""

    async def story(there: Stage) -> None:
        await there.opened()
        await there.follow(there.want("openbao-auth", "cp"))
        roles = mount(there, "auth/kubernetes/cp/").settings
        assert roles["role/eso-tenant"]["bound_service_account_namespaces"] == ["openstack-cp"]
        assert roles["role/keystone-db"]["token_policies"] == ["keystone-db-cp"]
        assert roles["role/keystone-db"]["audience"] == "https://cp.sim.invalid"
        assert "role/horizon-db" not in roles

    played(story)


def test_a_first_secret_is_never_overwritten() -> None:
    """Neither by a repeated step nor by a new daemon, and not if a person was first."""

    async def story(there: Stage) -> None:
        await there.opened()
        one = there.want("openbao-secrets", "cp")
        steps = list(await there.proposed(one))
        made = next(step for step in steps if step.args["path"] == "infrastructure/mariadb-cp")
        for _ in range(2):
            await there.driver(one).apply(made)
        entry = mount(there, "kv-v2/").entries["infrastructure/mariadb-cp"]
        first = entry.versions[1].data
        there.restart()
        await there.follow(one)
        assert entry.current == 1
        assert entry.versions[1].data == first

    played(story)


def test_a_path_that_is_pushed_to_is_stamped() -> None:
    """Without the stamp it is a failure, and the stamp is put on."""

    async def story(there: Stage) -> None:
        await there.opened()
        one = there.want("openbao-secrets", "cp")
        await there.follow(one)
        entry = mount(there, "kv-v2/").entries[ADMIN]
        stamped = dict(entry.custom)
        entry.custom.clear()
        judged = await there.ready(one)
        await there.follow(one)
        assert stamped["managed-by"] == "external-secrets"
        assert judged is not None
        assert (judged.truth, judged.reason) == (Truth.FALSE, "NotStamped")
        assert entry.custom["managed-by"] == "external-secrets"

    played(story)


def test_secrets_have_the_form_that_their_users_ask_for() -> None:
    """Garage wants GK and 24 hex digits; a static seal 32 bytes."""

    async def story(there: Stage) -> None:
        await there.opened()
        await there.follow(there.want("openbao-secrets", "cp"))
        entries = mount(there, "kv-v2/").entries
        space = "bootstrap/openstack-cp"
        key = entries[f"{space}/garage/s3-credentials"].versions[1].data
        token = entries[f"{space}/garage/admin-token"].versions[1].data["token"]
        root = entries["infrastructure/mariadb-cp"].versions[1].data["root-password"]
        assert key["access-key-id"].startswith("GK")
        assert len(bytes.fromhex(key["access-key-id"][2:])) == 12
        assert len(bytes.fromhex(token)) == 32
        assert len(root) == 32
        assert root.isalnum()

    played(story)


def test_the_database_waits_for_mariadb() -> None:
    """OpenBao tries the connection when it is written; a refused one says so and is tried again."""

    async def story(there: Stage) -> None:
        await there.opened()
        await there.follow(there.want("openbao-secrets", "cp"))
        one = there.want("openbao-database", "prod")
        step = next(iter(await there.proposed(one)))
        refused: Any = await there.driver(one).apply(step)
        mariadb(there, "cp")
        await there.follow(one)
        assert (refused.reason, refused.retry) == ("ConnectionRefused", True)

    played(story)


def test_a_new_root_password_is_written_into_the_connection() -> None:
    """The version that was used is noted; a newer one is a reason to connect again."""

    async def story(there: Stage) -> None:
        await there.opened()
        await there.follow(there.want("openbao-secrets", "cp"))
        mariadb(there, "cp")
        one = there.want("openbao-database", "prod")
        await there.follow(one)
        entry = mount(there, "kv-v2/").entries["infrastructure/mariadb-cp"]
        entry.current = 2
        entry.versions[2] = entry.versions[1]
        verbs = [step.verb for step in await there.do(one)]
        assert verbs == ["connect"]
        assert (await there.facts(one))["current"] is True

    played(story)


def test_documents_can_name_what_lies_in_openbao() -> None:
    """By path and key; what is not there is said with the place, and nothing else."""

    async def story(there: Stage) -> None:
        await there.opened()
        one = there.want("openbao-secrets", "cp")
        await there.follow(one)
        access = {"openbao": {"path": ADMIN, "key": "password"}}
        found = await there.tools.secrets.read(access, one)
        stored = mount(there, "kv-v2/").entries[ADMIN].versions[1].data["password"]
        missing = ""
        try:
            await there.tools.secrets.read({"openbao": {"path": "nope", "key": "x"}}, one)
        except SecretError as cause:
            missing = str(cause)
        assert found.matches(stored)
        assert missing == "there is no x at kv-v2/nope in OpenBao; write it there"

    played(story)


def test_while_sealed_nothing_is_known_and_nothing_proposed() -> None:
    """Sealed is not absent: no engine, policy or secret is made again afterwards."""

    async def story(there: Stage) -> None:
        await there.opened()
        there.bao.seal()
        for kind in ("openbao-engines", "openbao-policies"):
            one = there.want(kind)
            seen = await there.look(one)
            assert seen.facts is None
            assert "sealed" in seen.error
            assert list(there.driver(one).propose(one, seen)) == []

    played(story)


def test_what_was_made_for_a_control_plane_goes_with_it() -> None:
    """Connection, roles and bootstrap secrets, also of a cloud that is gone already; what somebody
    else put beside them stays, and so do engines and policies, which are OpenBao's."""

    async def story(there: Stage) -> None:
        await there.opened()
        secrets = there.want("openbao-secrets", "cp")
        database = there.want("openbao-database", "prod")
        await there.follow(secrets)
        mariadb(there, "cp")
        await there.follow(database)
        entries = mount(there, "kv-v2/").entries
        foreign = "bootstrap/openstack-cp/garage/by-hand"
        entries[foreign] = replace(entries[ADMIN], custom={})
        for one in (database, secrets):
            gone = replace(one, absent=True, needs=frozenset())
            for step in await there.proposed(gone):
                assert step.destroys == {one.ref}
                assert await there.driver(one).apply(step) == Done()
            assert await there.facts(gone) == {}
            assert list(await there.proposed(gone)) == []
        assert [path for path in entries if "-cp" in path] == [foreign]
        assert mount(there, "database/mariadb/").settings == {}
        for kind in ("openbao-engines", "openbao-policies"):
            assert list(await there.proposed(replace(there.want(kind), absent=True))) == []

    played(story)
