"""The simulated OpenBao answers hvac as the real one was seen to: seal, members, KV, policies."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import hvac
import hvac.exceptions
import pytest
import requests

from fleetd.sim import loop
from fleetd.sim.faults import Climate
from fleetd.sim.ledger import Ledger
from fleetd.sim.net import SimNetwork
from fleetd.sim.services.openbao import policy
from fleetd.sim.services.openbao.members import STATIC
from fleetd.sim.services.openbao.service import OpenBao
from fleetd.sim.world import World

START = datetime(2026, 3, 3, 21, 0, tzinfo=UTC)
URL = "https://openbao-eu-1.sim:8200"


class Bench:
    """An OpenBao of three members that run, and clients for it."""

    def __init__(self, seal: str = "shamir") -> None:
        self.world = World(1, START)
        self.bao = OpenBao(self.world, "eu-1", cluster="mgmt", members=3, seal=seal)
        self.world.services["openbao-eu-1"] = self.bao
        for number in range(3):
            self.world.services[f"openbao-eu-1-{number}"] = self.bao.member(number)
            self.bao.members.start(number)
        self.net = SimNetwork(self.world, Climate(self.world, Ledger()))
        self.keys: list[str] = []
        self.root = ""

    def client(self, token: str = "", member: int | None = None) -> Any:
        url = URL if member is None else f"https://openbao-eu-1-{member}.sim:8200"
        session = requests.Session()
        session.mount("https://", self.net.adapter(1))
        return hvac.Client(url=url, token=token, session=session)

    def read(self, client: Any, path: str) -> Any:
        kv = client.secrets.kv.v2
        return kv.read_secret(path, mount_point="kv-v2", raise_on_deleted_version=True)["data"]

    def code(self, member: int) -> int:
        return self.client(member=member).sys.read_health_status(method="HEAD").status_code

    def initialise(self) -> None:
        made = self.client(member=0).sys.initialize(secret_shares=5, secret_threshold=3)
        self.keys, self.root = made["keys_base64"], made["root_token"]

    def unseal(self, member: int) -> None:
        for key in self.keys[:3]:
            self.client(member=member).sys.submit_unseal_key(key)

    async def open(self) -> Any:
        """All members open, and root's client."""
        self.initialise()
        await asyncio.sleep(10)
        for number in range(3):
            self.unseal(number)
        await asyncio.sleep(1)
        client = self.client(self.root)
        client.sys.enable_secrets_engine("kv", path="kv-v2", options={"version": "2"})
        return client


def played(story: Callable[[Bench], Awaitable[None]], seal: str = "shamir") -> None:
    async def run() -> None:
        bench = Bench(seal)
        await story(bench)
        assert bench.world.failures == []

    loop.run(run())


def test_health_tells_new_sealed_active_and_standby() -> None:
    """501, 503, then 200 on the leader and 429 on the others."""

    async def story(bench: Bench) -> None:
        seen = [bench.code(0)]
        bench.initialise()
        seen.append(bench.code(0))
        await asyncio.sleep(10)
        for number in range(3):
            bench.unseal(number)
        await asyncio.sleep(1)
        seen += [bench.code(number) for number in range(3)]
        assert seen == [501, 503, 200, 429, 429]

    played(story)


def test_it_is_initialised_once() -> None:
    """A second request is refused and changes no key."""

    async def story(bench: Bench) -> None:
        bench.initialise()
        keys = bench.bao.data.shares
        with pytest.raises(hvac.exceptions.InvalidRequest, match="already initialized"):
            bench.client(member=0).sys.initialize(secret_shares=5, secret_threshold=3)
        assert bench.bao.data.shares == keys

    played(story)


def test_a_sealed_one_answers_nothing() -> None:
    """Whatever is asked: 503, Vault is sealed; the data is there again afterwards."""

    async def story(bench: Bench) -> None:
        client = await bench.open()
        client.secrets.kv.v2.create_or_update_secret("a", {"x": "1"}, mount_point="kv-v2")
        bench.bao.seal()
        with pytest.raises(hvac.exceptions.VaultDown, match="Vault is sealed"):
            client.sys.list_mounted_secrets_engines()
        for number in range(3):
            bench.unseal(number)
        await asyncio.sleep(12)
        assert bench.read(client, "a")["data"] == {"x": "1"}

    played(story)


def test_a_restarted_member_is_sealed_under_shamir() -> None:
    """And another one leads meanwhile, some seconds later."""

    async def story(bench: Bench) -> None:
        await bench.open()
        bench.bao.members.stop(0)
        bench.bao.members.start(0)
        codes = [bench.code(number) for number in range(3)]
        await asyncio.sleep(15)
        later = [bench.code(number) for number in range(3)]
        assert codes == [503, 429, 429]
        assert later == [503, 200, 429]

    played(story)


def test_a_static_seal_opens_by_itself() -> None:
    """It wants recovery shares at initialisation, and no key after a restart."""

    async def story(bench: Bench) -> None:
        client = bench.client(member=0)
        with pytest.raises(hvac.exceptions.InvalidRequest, match="not applicable to seal type"):
            client.sys.initialize(secret_shares=5, secret_threshold=3)
        made = client.sys.initialize(
            secret_shares=None, secret_threshold=None, recovery_shares=1, recovery_threshold=1
        )
        await asyncio.sleep(10)
        bench.bao.members.stop(0)
        bench.bao.members.start(0)
        await asyncio.sleep(15)
        assert made["keys"] == []
        assert bench.code(0) in (200, 429)

    played(story, seal=STATIC)


def test_without_a_majority_nobody_leads() -> None:
    """The survivor stays standby, and says that there is no active node."""

    async def story(bench: Bench) -> None:
        client = await bench.open()
        bench.bao.members.stop(1)
        bench.bao.members.stop(0)
        await asyncio.sleep(60)
        assert bench.code(2) == 429
        with pytest.raises(hvac.exceptions.InternalServerError, match="active cluster node not"):
            client.sys.list_mounted_secrets_engines()

    played(story)


def test_with_another_audit_file_no_follower_takes_over() -> None:
    """Danger 16: a majority is there, and nobody leads until the leader is back."""

    async def story(bench: Bench) -> None:
        for number in (1, 2):
            bench.bao.members.all[number].audit = f"/audit/{number}.log"
        await bench.open()
        bench.bao.members.stop(0)
        await asyncio.sleep(600)
        assert [bench.code(1), bench.code(2)] == [429, 429]
        bench.bao.members.start(0)
        await asyncio.sleep(5)
        bench.unseal(0)
        await asyncio.sleep(60)
        assert bench.code(0) == 200

    played(story)


def test_no_pods_no_answer() -> None:
    """The connection is refused while nothing runs."""

    async def story(bench: Bench) -> None:
        for number in range(3):
            bench.bao.members.stop(number)
        with pytest.raises((requests.ConnectionError, ConnectionError)):
            bench.client().sys.read_health_status(method="HEAD")

    played(story)


def test_kv_keeps_versions_and_checks_cas() -> None:
    """cas=0 makes, and only once; ten versions are kept; a missing path is a 404."""

    async def story(bench: Bench) -> None:
        kv = (await bench.open()).secrets.kv.v2
        kv.create_or_update_secret("p", {"n": "0"}, cas=0, mount_point="kv-v2")
        with pytest.raises(hvac.exceptions.InvalidRequest, match="check-and-set parameter did"):
            kv.create_or_update_secret("p", {"n": "9"}, cas=0, mount_point="kv-v2")
        for number in range(1, 12):
            kv.create_or_update_secret("p", {"n": str(number)}, mount_point="kv-v2")
        described = kv.read_secret_metadata("p", mount_point="kv-v2")["data"]
        with pytest.raises(hvac.exceptions.InvalidPath):
            kv.read_secret_version("p", 1, mount_point="kv-v2", raise_on_deleted_version=True)
        assert described["current_version"] == 12
        assert sorted(map(int, described["versions"])) == list(range(3, 13))

    played(story)


def test_kv_deletes_and_brings_back() -> None:
    """A deleted version is a 404 with its metadata, and undelete gives it back."""

    async def story(bench: Bench) -> None:
        client = await bench.open()
        kv = client.secrets.kv.v2
        kv.create_or_update_secret("p", {"n": "0"}, mount_point="kv-v2")
        kv.delete_latest_version_of_secret("p", mount_point="kv-v2")
        with pytest.raises(hvac.exceptions.InvalidPath):
            kv.read_secret_version("p", mount_point="kv-v2", raise_on_deleted_version=True)
        kv.undelete_secret_versions("p", [1], mount_point="kv-v2")
        assert bench.read(client, "p")["data"] == {"n": "0"}

    played(story)


def test_policies_are_enforced() -> None:
    """A token may what its policies say, on data and metadata apart, and nothing else."""

    async def story(bench: Bench) -> None:
        client = await bench.open()
        text = 'path "kv-v2/data/ceph/*" { capabilities = ["read", "create", "update"] }'
        client.sys.create_or_update_policy("docs", text)
        made = client.auth.token.create(policies=["docs"])["auth"]["client_token"]
        other = bench.client(made)
        other.secrets.kv.v2.create_or_update_secret("ceph/a", {"x": "1"}, mount_point="kv-v2")
        with pytest.raises(hvac.exceptions.Forbidden, match="permission denied"):
            other.secrets.kv.v2.read_secret_metadata("ceph/a", mount_point="kv-v2")
        with pytest.raises(hvac.exceptions.Forbidden):
            bench.read(other, "infrastructure/a")
        with pytest.raises(hvac.exceptions.Forbidden):
            other.sys.list_mounted_secrets_engines()

    played(story)


@pytest.mark.parametrize(
    ("rules", "path", "granted"),
    [
        ({"a/*": "read", "a/b": "update"}, "a/b", {"update"}),
        ({"a/+/c": "read", "a/*": "update"}, "a/b/c", {"read"}),
        ({"a/*": "read", "a/b/*": "update"}, "a/b/c", {"update"}),
        ({"a/+": "read"}, "a/b/c", set[str]()),
        ({"a/*": "read", "a/b": "deny"}, "a/b", set[str]()),
    ],
)
def test_the_most_specific_rule_counts(rules: dict[str, str], path: str, granted: set[str]) -> None:
    """Exact before wildcards, a later wildcard before an earlier one; deny is deny."""
    texts = [f'path "{where}" {{ capabilities = ["{what}"] }}' for where, what in rules.items()]

    assert policy.granted(texts, path, {}) == granted


def test_a_revoked_root_token_is_no_good() -> None:
    """And the tokens that it made live on."""

    async def story(bench: Bench) -> None:
        client = await bench.open()
        client.sys.create_or_update_policy("any", 'path "sys/mounts" { capabilities = ["read"] }')
        made = client.auth.token.create(policies=["any"])["auth"]["client_token"]
        client.auth.token.revoke_self()
        with pytest.raises(hvac.exceptions.Forbidden):
            client.sys.list_mounted_secrets_engines()
        assert "kv-v2/" in bench.client(made).sys.list_mounted_secrets_engines()["data"]

    played(story)


def test_audit_devices_are_not_made_by_the_api() -> None:
    """They are declared in the configuration."""

    async def story(bench: Bench) -> None:
        client = await bench.open()
        with pytest.raises(hvac.exceptions.InvalidRequest, match="cannot enable audit device"):
            client.sys.enable_audit_device("file", options={"file_path": "/x"})

    played(story)


def test_pki_issues_only_what_the_role_allows() -> None:
    """Below its domains, and with the words of the real one otherwise."""

    async def story(bench: Bench) -> None:
        client = await bench.open()
        client.sys.enable_secrets_engine("pki")
        client.secrets.pki.generate_root("internal", "root")
        client.secrets.pki.create_or_update_role(
            "r", {"allowed_domains": ["x.example"], "allow_subdomains": True}
        )
        made = client.secrets.pki.generate_certificate("r", "a.x.example")["data"]
        with pytest.raises(hvac.exceptions.InvalidRequest, match=r"a\.other not allowed"):
            client.secrets.pki.generate_certificate("r", "a.other")
        assert made["certificate"].startswith("-----BEGIN CERTIFICATE")

    played(story)


def test_approle_logs_in_until_the_secret_id_ends() -> None:
    """The silent fuse: after its time the same credentials are refused."""

    async def story(bench: Bench) -> None:
        client = await bench.open()
        client.sys.enable_auth_method("approle")
        roles = client.auth.approle
        roles.create_or_update_approle("barbican", secret_id_ttl="720h", token_policies=["default"])
        role_id = roles.read_role_id("barbican")["data"]["role_id"]
        secret_id = roles.generate_secret_id("barbican")["data"]["secret_id"]
        first = bench.client().auth.approle.login(role_id, secret_id)
        await asyncio.sleep(721 * 3600)
        with pytest.raises(hvac.exceptions.InvalidRequest, match="invalid role or secret ID"):
            bench.client().auth.approle.login(role_id, secret_id)
        assert "default" in first["auth"]["policies"]

    played(story)
