"""How callers prove who they are, and what is refused."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import aiohttp
import jwt
import pytest
import pytest_asyncio

from fleetd import errors
from fleetd.clock import SystemClock
from fleetd.daemon.access import guard, kubernetes, oidc, rules, tokens
from fleetd.daemon.access.guard import GuardedDoor
from fleetd.daemon.access.kubernetes import Reviewer
from fleetd.daemon.access.tls import Tls
from fleetd.kube.transport import Request, Response
from fleetd.settings import Address
from fleetd.surface import http, problems
from fleetd.surface.door import Buckets, Knock, LocalDoor, Rate
from fleetd.surface.identity import Identity, Role
from tests.real import certs
from tests.surface import issuers, panels
from tests.surface.issuers import Issuer

TOKEN = tokens.new()
NOBODY: Any = None


class Moving:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def monotonic(self) -> float:
        return self.ahead.total_seconds()


def file(folder: Path, text: str) -> Path:
    path = folder / "access.toml"
    path.write_text(text)
    path.chmod(0o600)
    return path


def entry(token: str = TOKEN, name: str = "ci", more: str = "") -> str:
    head = f'[[tokens]]\nname = "{name}"\nsha256 = "{tokens.digest(token)}"\n'
    return f'{head}role = "operator"\n{more}\n'


def knock(bearer: str = "", **more: Any) -> Knock:
    return Knock(path="/api/v1/regions", host="fleetd.example", bearer=bearer, **more)


async def refusal(door: Any, given: Knock) -> str:
    with pytest.raises(problems.Refused) as refused:
        await door.identify(given)
    assert refused.value.detail
    return refused.value.code


def test_tokens_are_long_and_kept_as_digests() -> None:
    """Two tokens differ, have 256 bits, and their digest tells nothing of them."""
    assert tokens.new() != TOKEN
    assert len(TOKEN) == len("fleetd_") + 43
    assert TOKEN[7:] not in tokens.digest(TOKEN)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "lets nobody in"),
        ("x", "is not TOML"),
        ("[[token]]\n", "unknown field"),
        ('[[tokens]]\nname = "a"\n', "missing required field"),
        (entry(more='colour = "red"'), "unknown field"),
        (entry().replace("operator", "root"), "role"),
        (entry().replace('sha256 = "', 'sha256 = "x'), "sha256"),
        (entry() + entry(), "two tokens are called ci"),
        (entry(more="expires = 2027-01-01T00:00:00"), "needs a zone"),
        ('[oidc]\nissuer = "http://issuer.example"\naudience = "x"\n', "https"),
        ('[oidc]\nissuer = "https://i"\naudience = "x"\n[[oidc.grants]]\nrole = "admin"', "either"),
        ('[kubernetes]\nkubeconfig = "none"\n', "does not exist"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, wrong: str) -> None:
    """A file that is not understood lets the daemon not start, and says why."""
    with pytest.raises(errors.SettingsError, match=wrong):
        GuardedDoor(file(tmp_path, text), NOBODY, SystemClock())


def test_a_file_that_others_may_write(tmp_path: Path) -> None:
    """Whoever can write the file could let himself in."""
    path = file(tmp_path, entry())
    path.chmod(0o620)
    with pytest.raises(errors.SettingsError, match="others may write"):
        rules.read(path)


async def test_tokens(tmp_path: Path) -> None:
    """A known token is let in with its role and regions; another, or none, is not."""
    path = file(tmp_path, entry(more='regions = ["eu-1"]'))
    door = GuardedDoor(path, NOBODY, SystemClock())
    assert await door.identify(knock(TOKEN)) == Identity(
        name="token:ci", role=Role.OPERATOR, how="token", regions=frozenset({"eu-1"})
    )
    for bad in ("", "x", TOKEN[:-1], TOKEN + "x", tokens.new(), tokens.digest(TOKEN), "fleetd_"):
        assert await refusal(door, knock(bad)) == "unauthorized"


async def test_a_word_somebody_thought_of_is_no_token(tmp_path: Path) -> None:
    """Even with its digest in the file: it could be guessed."""
    door = GuardedDoor(file(tmp_path, entry("fleetd_secret")), NOBODY, SystemClock())
    assert await refusal(door, knock("fleetd_secret")) == "unauthorized"


async def test_expiry(tmp_path: Path) -> None:
    """A token ends when it was meant to."""
    time = Moving()
    ends = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    door = GuardedDoor(file(tmp_path, entry(more=f"expires = {ends}")), NOBODY, time)
    assert (await door.identify(knock(TOKEN))).name == "token:ci"
    time.ahead = timedelta(hours=1)
    assert await refusal(door, knock(TOKEN)) == "unauthorized"


async def test_the_file_is_read_again(tmp_path: Path) -> None:
    """What was revoked is refused at the next look; a bad file changes nothing and is told."""
    path, other = file(tmp_path, entry()), tokens.new()
    door = GuardedDoor(path, NOBODY, SystemClock())
    file(tmp_path, entry(other, "new"))
    await door.look()
    assert await refusal(door, knock(TOKEN)) == "unauthorized"
    assert (await door.identify(knock(other))).name == "token:new"
    file(tmp_path, "[[")
    await door.look()
    assert "is not TOML" in door.complaint()
    assert (await door.identify(knock(other))).name == "token:new"
    file(tmp_path, entry())
    await door.look()
    assert (door.complaint(), await refusal(door, knock(other))) == ("", "unauthorized")


def test_of_several_grants_the_highest_role_counts() -> None:
    """Its regions are those of the grants with that role; one without a limit has all."""
    given = [
        rules.Grant(role="viewer"),
        rules.Grant(role="operator", regions=("a",)),
        rules.Grant(role="operator", regions=("b",)),
    ]
    found = rules.granted(given, name="x", how="y")
    assert found is not None
    assert (found.role, found.regions) == (Role.OPERATOR, frozenset({"a", "b"}))
    whole = rules.granted([*given, rules.Grant(role="operator")], name="x", how="y")
    assert whole is not None
    assert whole.regions is None
    assert rules.granted([], name="x", how="y") is None


@pytest_asyncio.fixture
async def issuer() -> AsyncGenerator[Issuer]:
    async with issuers.running() as issuer:
        yield issuer


def asks(folder: Path, issuer: Issuer, time: Any = None) -> GuardedDoor:
    text = (
        f'[oidc]\nissuer = "{issuer.url}"\naudience = "fleetd"\n'
        '[[oidc.grants]]\ngroup = "ops"\nrole = "operator"\n'
        '[[oidc.grants]]\nuser = "eve"\nrole = "viewer"\nregions = ["eu-2"]\n'
    )
    return GuardedDoor(file(folder, text), NOBODY, time or SystemClock())


async def test_tokens_of_an_issuer(tmp_path: Path, issuer: Issuer) -> None:
    """A good token has the role of its groups, or of its user."""
    door = asks(tmp_path, issuer)
    found = await door.identify(knock(issuer.token("x", "ops")))
    assert (found.name, found.role, found.how) == ("ada", Role.OPERATOR, "oidc")
    found = await door.identify(knock(issuer.token(sub="eve")))
    assert (found.role, found.regions) == (Role.VIEWER, frozenset({"eu-2"}))
    assert await refusal(door, knock(issuer.token("others"))) == "forbidden"
    assert issuer.asked == 1


async def test_a_group_without_a_name_is_nobodys(tmp_path: Path, issuer: Issuer) -> None:
    """A grant to a user names no group, so a token with an empty group does not get it."""
    assert await refusal(asks(tmp_path, issuer), knock(issuer.token(""))) == "forbidden"


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "somebody-else"},
        {"aud": None},
        {"exp": None},
        {"exp": datetime(2020, 1, 1, tzinfo=UTC)},
        {"exp": 1e300},
        {"nbf": datetime(2100, 1, 1, tzinfo=UTC)},
        {"sub": None},
        {"sub": "a\nb"},
        {"iss": "https://evil.example"},
    ],
    ids=str,
)
async def test_bad_claims(tmp_path: Path, issuer: Issuer, claims: dict[str, Any]) -> None:
    """Wrong audience, times, name or issuer are each refused, whatever the signature."""
    door = asks(tmp_path, issuer)
    assert await refusal(door, knock(issuer.token("ops", **claims))) == "unauthorized"


async def test_bad_signatures(tmp_path: Path, issuer: Issuer) -> None:
    """No signature, another's key, a symmetric one, or a changed body are refused."""
    door = asks(tmp_path, issuer)
    good = issuer.token("ops")
    head, body, sign = good.split(".")
    other = Issuer(url=issuer.url)
    none = jwt.encode({"iss": issuer.url}, None, algorithm="none", headers={"kid": "k1"})  # pyright: ignore[reportArgumentType]
    hmac = issuer.token("ops", headers={"alg": "HS256", "kid": "oct"}, key="\0\0\0" * 11)
    for bad in (
        other.token("ops"),
        none,
        hmac,
        issuer.token("ops", headers={"alg": "HS256"}, key="x" * 32),
        f"{head}.{body}.",
        f"{head}.{body}.{sign[::-1]}",
        f"{head}.{Issuer(url=issuer.url).token('admins').split('.')[1]}.{sign}",
        good[:-4],
        "a.b.c",
        "\udcff",
        f"{good}\udcff",
    ):
        assert await refusal(door, knock(bad)) == "unauthorized"


async def test_keys_are_rotated(tmp_path: Path, issuer: Issuer) -> None:
    """A new key is fetched, though not more often than bounded; an old one ends within the hour."""
    time = Moving()
    door = asks(tmp_path, issuer, time)
    old = issuer.token("ops", exp=datetime.now(UTC) + timedelta(hours=3))
    await door.identify(knock(old))
    issuer.rotate("k2")
    fresh = issuer.token("ops", exp=datetime.now(UTC) + timedelta(hours=3))
    assert await refusal(door, knock(fresh)) == "unauthorized"
    time.ahead += timedelta(seconds=oidc.NOT_SOONER)
    for _ in range(20):
        await door.identify(knock(fresh))
        await refusal(door, knock(issuer.token("ops", headers={"kid": "junk"})))
    assert issuer.asked == 2
    time.ahead += timedelta(seconds=oidc.KEPT + 1)
    await refusal(door, knock(old))
    assert issuer.asked == 3


async def test_an_issuer_that_does_not_answer(tmp_path: Path, issuer: Issuer) -> None:
    """Known keys go on opening; without any it is said that nobody can be known now."""
    time = Moving()
    door, token = asks(tmp_path, issuer, time), issuer.token("ops")
    await door.identify(knock(token))
    issuer.down = True
    time.ahead += timedelta(seconds=oidc.NOT_SOONER)
    await door.identify(knock(token))
    issuer.rotate("k2")
    for _ in range(2):
        assert await refusal(door, knock(issuer.token("ops"))) == "login-unavailable"
    fresh = asks(tmp_path, issuer, Moving())
    assert await refusal(fresh, knock(token)) == "login-unavailable"
    assert await refusal(fresh, knock(token)) == "login-unavailable"


async def test_an_issuer_that_is_somebody_else(tmp_path: Path, issuer: Issuer) -> None:
    """Keys of who says that he is another are not taken."""
    issuer.says = "https://other.example"
    assert await refusal(asks(tmp_path, issuer), knock(issuer.token("ops"))) == "login-unavailable"


class Cluster:
    """An API server that knows one token."""

    def __init__(self) -> None:
        self.asked = 0
        self.status = 201
        self.audiences = ["fleetd"]

    def kube(self, _kubeconfig: object) -> "Cluster":
        return self

    async def send(self, request: Request) -> Response:
        self.asked += 1
        known = b'"token":"good"' in request.body
        user = '{"username":"system:serviceaccount:ops:ci","groups":["system:serviceaccounts:ops"]}'
        heard = str(self.audiences).replace("'", '"')
        told = f'"authenticated":{str(known).lower()},"user":{user},"audiences":{heard}'
        body = f'{{"kind":"TokenReview","status":{{{told}}}}}'
        return Response(status=self.status, body=body.encode())

    async def close(self) -> None:
        pass


def reviewer(folder: Path, cluster: Cluster, time: Any) -> Reviewer:
    (folder / "kubeconfig").write_text("x")
    grant = rules.GroupGrant(role="viewer", group="system:serviceaccounts:ops")
    given = rules.Kubernetes(kubeconfig="kubeconfig", grants=(grant,))
    return Reviewer(given, folder, cast("Any", cluster), time)


async def test_tokens_of_kubernetes(tmp_path: Path) -> None:
    """The cluster says whose a token is; its word is kept for a while and then asked for again."""
    cluster, time = Cluster(), Moving()
    door = reviewer(tmp_path, cluster, time)
    found = await door.identify("good", "here")
    assert (found.name, found.role) == ("system:serviceaccount:ops:ci", Role.VIEWER)
    await door.identify("good", "here")
    assert cluster.asked == 1
    for _ in range(3):
        with pytest.raises(problems.Refused, match="does not know"):
            await door.identify("bad", "here")
    assert cluster.asked == 2
    time.ahead += timedelta(seconds=kubernetes.GOOD)
    cluster.audiences = ["others"]
    with pytest.raises(problems.Refused, match="does not know"):
        await door.identify("good", "here")


async def test_strangers_cannot_make_us_ask_at_will(tmp_path: Path) -> None:
    """Each address has its turns and all together have theirs; who was let in before is not held up
    by them, also when what is known of him has to be asked for again."""
    cluster, time = Cluster(), Moving()
    door = reviewer(tmp_path, cluster, time)
    await door.identify("good", "proxy")

    async def guess(address: str) -> str:
        with pytest.raises(problems.Refused) as refused:
            await door.identify(tokens.new(), address)
        return refused.value.code

    told = [await guess("proxy") for _ in range(50)]
    assert told.count("unauthorized") == kubernetes.OF_ADDRESS.burst - 1
    assert set(told[20:]) == {"too-many-requests"}
    assert await guess("elsewhere") == "unauthorized"
    for number in range(1000):
        await guess(f"10.0.0.{number}")
    assert cluster.asked <= kubernetes.OF_ALL.burst
    time.ahead += timedelta(seconds=kubernetes.GOOD)
    assert (await door.identify("good", "proxy")).role is Role.VIEWER


async def test_one_token_of_many_requests_is_one_question(tmp_path: Path) -> None:
    """A page asks ten things at once."""
    cluster = Cluster()
    door = reviewer(tmp_path, cluster, Moving())
    await asyncio.gather(*(door.identify("good", "here") for _ in range(50)))
    assert cluster.asked == 1


async def test_bytes_that_are_no_text_are_nobodys_token(tmp_path: Path) -> None:
    """A header may hold any byte; a cluster is not asked about what no token can be."""
    (tmp_path / "kubeconfig").write_text("x")
    cluster = Cluster()
    path = file(tmp_path, '[kubernetes]\nkubeconfig = "kubeconfig"\n')
    door = GuardedDoor(path, cast("Any", cluster), SystemClock())
    assert await refusal(door, knock("good\udcff")) == "unauthorized"
    assert cluster.asked == 0


async def test_a_cluster_that_does_not_answer(tmp_path: Path) -> None:
    """Then nobody can be known, and the next request asks again."""
    cluster = Cluster()
    cluster.status = 500
    door = reviewer(tmp_path, cluster, Moving())
    with pytest.raises(problems.Refused) as refused:
        await door.identify("good", "here")
    assert refused.value.code == "login-unavailable"
    cluster.status = 201
    assert (await door.identify("good", "here")).role is Role.VIEWER


async def test_a_proxy_is_not_this_machine() -> None:
    """On loopback without rules, what came through a proxy is of somebody else."""
    here = Knock(path="/api/v1/regions", host="localhost")
    assert (await LocalDoor().identify(here)).role is Role.ADMIN
    through = Knock(path="/api/v1/regions", host="localhost", forwarded=True)
    assert await refusal(LocalDoor(), through) == "unauthorized"


def test_buckets() -> None:
    """A caller may send a burst, then as many as the rate gives; another is not touched by it."""
    time = Moving()
    buckets = Buckets(Rate(2.0, 3), cast("Any", time))
    assert [buckets.take("a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert buckets.take("a") == pytest.approx(0.5)
    assert buckets.take("b") == 0.0
    time.ahead += timedelta(seconds=0.5)
    assert [buckets.take("a") > 0 for _ in range(2)] == [False, True]
    time.ahead += timedelta(hours=1)
    assert [buckets.take("a") > 0 for _ in range(4)] == [False, False, False, True]


async def test_who_sends_too_much_is_told_when_to_come_again(tmp_path: Path) -> None:
    """429 with Retry-After, for callers who are known and for those who guess."""
    door = GuardedDoor(file(tmp_path, entry()), NOBODY, SystemClock())
    here = Address("127.0.0.1", 0)
    async with (
        http.serving(panels.small(), here, door=door, rate=Rate(0.01, 2)) as server,
        aiohttp.ClientSession() as session,
    ):
        for token, first in ((TOKEN, 200), (tokens.new(), 401)):
            headers, url = {"Authorization": f"Bearer {token}"}, f"{server.url}/api/v1/kinds"
            told = [await session.get(url, headers=headers) for _ in range(25)]
            seen = [answer.status for answer in told]
            assert (seen[0], seen[-1], set(seen)) == (first, 429, {first, 429})
            assert int(told[-1].headers["Retry-After"]) >= 1
        assert (await session.get(f"{server.url}/healthz")).status == 200


CERTIFIED = '[[certificates.grants]]\nname = "ada"\nrole = "admin"\n'


async def seen(server: Any, authority: certs.Authority, pair: Any = None) -> int:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    async with aiohttp.ClientSession() as session:
        answer = await session.get(f"{server.url}/api/v1/regions", ssl=context)
        return answer.status


async def test_client_certificates(tmp_path: Path) -> None:
    """A certificate of our authority has the role of its name; others and strangers have none."""
    authority = certs.Authority(tmp_path, "ours")
    (tmp_path / "other").mkdir()
    stranger = certs.Authority(tmp_path / "other", "theirs").client("ada")
    own = authority.server("fleetd")
    tls = Tls(own.certificate, own.key, authority.certificate)
    door = GuardedDoor(file(tmp_path, CERTIFIED), NOBODY, SystemClock())
    here = Address("127.0.0.1", 0)
    async with http.serving(panels.small(), here, door=door, tls=tls.context) as server:
        assert server.url.startswith("https://")
        assert await seen(server, authority, authority.client("ada")) == 200
        assert await seen(server, authority, authority.client("bob")) == 403
        assert await seen(server, authority) == 401
        with pytest.raises(aiohttp.ClientError):
            await seen(server, authority, stranger)


async def test_certificates_are_read_again(tmp_path: Path) -> None:
    """A new certificate, and new authorities of clients, count for the next connection; a broken
    file changes nothing and is told."""
    old = certs.Authority(tmp_path, "old")
    (tmp_path / "new").mkdir()
    new = certs.Authority(tmp_path / "new", "new")
    served, trusted = old.server("fleetd"), tmp_path / "clients.pem"
    trusted.write_bytes(old.certificate.read_bytes())
    tls = Tls(served.certificate, served.key, trusted)
    door = GuardedDoor(file(tmp_path, CERTIFIED), NOBODY, SystemClock())
    ada, other = old.client("ada"), new.client("ada")
    here = Address("127.0.0.1", 0)
    async with http.serving(panels.small(), here, door=door, tls=tls.context) as server:
        assert await seen(server, old, ada) == 200
        good = served.certificate.read_bytes()
        served.certificate.write_text("junk")
        await tls.look()
        assert tls.complaint
        assert await seen(server, old, ada) == 200
        served.certificate.write_bytes(good)
        fresh = new.server("fleetd")
        served.certificate.write_bytes(fresh.certificate.read_bytes())
        served.key.write_bytes(fresh.key.read_bytes())
        trusted.write_bytes(new.certificate.read_bytes())
        await tls.look()
        assert tls.complaint == ""
        assert await seen(server, new, other) == 200
        with pytest.raises(aiohttp.ClientError):
            await seen(server, new, ada)
        with pytest.raises(aiohttp.ClientError):
            await seen(server, old, ada)


def test_names_of_certificates() -> None:
    """Common name and alternative names count; addresses do not."""
    told = {
        "subject": ((("organizationName", "o"),), (("commonName", "ada"),)),
        "subjectAltName": (
            ("DNS", "a.example"),
            ("IP Address", "192.0.2.1"),
            ("URI", "spiffe://x"),
        ),
    }
    assert guard.names(told) == ["ada", "a.example", "spiffe://x"]
