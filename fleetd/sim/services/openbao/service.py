"""
OpenBao behind HTTP: which member answers, who asks, whether he may, and which backend it is for.

Imitates what was seen of OpenBao 2.4 (`real-secrets` 2 and 3 of the facts). Everything it keeps is
in `Data` and survives restarts; every value it makes follows from the seed, so that a leak can be
found by its text. Client certificates are not imitated. One rule: nothing is answered that the
token's policies do not allow.
"""

from urllib.parse import unquote

from fleetd.sim.services.openbao import answers, calls, kv, pki, policy
from fleetd.sim.services.openbao.calls import Call
from fleetd.sim.services.openbao.data import Data, Mount, Token
from fleetd.sim.services.openbao.database import Database
from fleetd.sim.services.openbao.kubernetes import KubernetesAuth
from fleetd.sim.services.openbao.members import SHAMIR, STATIC, Member, Members
from fleetd.sim.services.openbao.system import System
from fleetd.sim.services.openbao.tokens import Grant, Tokens
from fleetd.sim.world import HttpRequest, HttpResponse, World

PORT = 8200
_LOGINS = ("/login",)


class OpenBao:
    """The address in front of all members; `member` gives that of one."""

    def __init__(
        self,
        world: World,
        region: str,
        *,
        cluster: str = "",
        members: int = 3,
        seal: str = SHAMIR,
    ) -> None:
        """`cluster` is the management cluster that its pods are on; empty for one of the
        customer's own, which just runs."""
        self.world = world
        self.region = region
        self.cluster = cluster
        self.name = f"openbao-{region}"
        self.data = Data()
        self.members = Members(world, self.name, self.data, members, seal=seal)
        self.tokens = Tokens(world, self.name, self.data)
        self.system = System(world, self.name, self.data, self.members, self.tokens)
        self.kubernetes = KubernetesAuth(world)
        self.database = Database(world, self.name, self.data)
        self.writes = 0
        """Requests that were allowed to change something."""
        world.listeners.append(self._befell)

    @property
    def initialised(self) -> int:
        """How often the present store was: more than once must never be."""
        return self.members.initialised

    def _befell(self, mishap: tuple[str, str, str]) -> None:
        if mishap == ("openbao", self.region, "sealed") and mishap in self.world.mishaps:
            self.seal()

    def handle(self, request: HttpRequest) -> HttpResponse:
        """One that leads, or else one that serves, or else any that runs."""
        running = [one for one in self.members.all if one.running]
        if not running:
            raise ConnectionRefusedError(f"{self.name}: connection refused")
        leader = [one for one in running if one.number == self.members.leader]
        serving = [one for one in running if one.serves]
        return self.answer((leader or serving or running)[0], request)

    def seal(self) -> None:
        """As when somebody, or a fault, seals every member."""
        for member in self.members.all:
            if member.running and not member.sealed:
                self.members.close(member)

    def member(self, number: int) -> "Face":
        return Face(self, number)

    def answer(self, member: Member, request: HttpRequest) -> HttpResponse:
        try:
            made = self._answer(member, request)
        except answers.Refused as refused:
            made = refused.response()
        return HttpResponse(status=made.status) if request.method == "HEAD" else made

    def _answer(self, member: Member, request: HttpRequest) -> HttpResponse:
        if not request.path.startswith("/v1/"):
            raise answers.Refused(404)
        path = unquote(request.path).removeprefix("/v1/").strip("/")
        operation = calls.operation(request)
        body = calls.body(request)
        match path:
            case "sys/health":
                return self.members.health(member, request.query)
            case "sys/seal-status":
                return self.members.seal_status(member)
            case "sys/init" if operation == "read":
                return answers.plain(200, {"initialized": member.joined})
            case "sys/init":
                return self._initialise(member, body)
            case "sys/unseal":
                return self.members.unseal(member, body)
            case "sys/leader":
                return self._leader(member)
            case _:
                pass
        if member.sealed or not member.joined:
            raise answers.sealed()
        if self.members.leader is None:
            raise answers.Refused(500, "local node not active but active cluster node not found")
        token = self.tokens.find(request.headers.get("x-vault-token", ""))
        call = Call(
            operation=operation,
            path=path,
            query=request.query,
            body=body,
            token=token,
            now=self.world.now(),
        )
        return self._carried_out(member, call)

    def _initialise(self, member: Member, body: calls.Mapping[str, object]) -> HttpResponse:
        self.members.initialise(member, body)
        self.system.furnish()
        root = self.tokens.make(
            Grant(
                policies=(policy.ROOT,), display_name="root", path="auth/token/root", endless=True
            )
        )
        static = self.members.seal == STATIC
        shares = list(self.data.shares)
        kept = {"recovery_keys": shares, "recovery_keys_base64": shares} if static else {}
        return answers.plain(
            200,
            {
                "keys": [] if static else shares,
                "keys_base64": [] if static else shares,
                **kept,
                "root_token": root.id,
            },
        )

    def _leader(self, member: Member) -> HttpResponse:
        if member.sealed or not member.joined:
            raise answers.sealed()
        leader = self.members.leader
        address = "" if leader is None else f"https://{self.members.all[leader].node}:{PORT}"
        return answers.plain(
            200,
            {
                "ha_enabled": True,
                "is_self": leader == member.number,
                "leader_address": address,
                "leader_cluster_address": address,
            },
        )

    def _carried_out(self, member: Member, call: Call) -> HttpResponse:
        mount = self._mount(call.path)
        if not (call.path.startswith("auth/") and call.path.endswith(_LOGINS)):
            self._check(call, mount)
        if call.operation not in ("read", "list"):
            self.writes += 1
        if call.path.startswith("sys/"):
            return self.system.handle(member, _below(call, "sys/"))
        return self._routed(mount, call)

    def _routed(self, mount: Mount | None, call: Call) -> HttpResponse:
        if mount is None:
            if call.path.startswith("auth/"):
                raise answers.denied()
            raise answers.Refused(404, f"no handler for route {call.path!r}")
        below = _below(call, mount.path)
        match mount.type:
            case "kv":
                for path, version in kv.taken(mount, below):
                    credential = f"{self.name}/{mount.path}{path}"
                    self.world.truth.revoked(credential, str(version), "a client of OpenBao")
                return kv.handle(mount, below)
            case "token":
                return self.tokens.handle(below)
            case "approle":
                return self.tokens.approle(mount, below)
            case "kubernetes":
                return self.kubernetes.handle(mount, below, self.tokens)
            case "database":
                return self.database.handle(mount, below)
            case "pki":
                return pki.handle(self.world, self.data, mount, below)
            case _:
                raise answers.Refused(404)

    def _check(self, call: Call, mount: Mount | None) -> None:
        token = call.token
        if token is None:
            raise answers.denied()
        needed = call.operation
        if needed == "update" and mount is not None and _makes(mount, call):
            needed = "create"
        if needed not in self._granted(token, call):
            raise answers.denied()

    def _granted(self, token: Token, call: Call) -> frozenset[str]:
        path = call.path
        found = self.tokens.granted(token, path)
        if call.operation == "list" and "list" not in found:
            found = self.tokens.granted(token, f"{path}/")
        return found

    def _mount(self, path: str) -> Mount | None:
        fitting = [one for one in self.data.mounts.values() if f"{path}/".startswith(one.path)]
        return max(fitting, key=lambda one: len(one.path), default=None)


class Face:
    """One member, reached by an address of its own."""

    def __init__(self, bao: OpenBao, number: int) -> None:
        self._bao = bao
        self._number = number

    def handle(self, request: HttpRequest) -> HttpResponse:
        member = self._bao.members.all[self._number]
        if not member.running:
            raise ConnectionRefusedError(f"{self._bao.name} {member.node}: connection refused")
        return self._bao.answer(member, request)


def _makes(mount: Mount, call: Call) -> bool:
    """Whether a write makes something new, where the backend can tell."""
    below = call.path[len(mount.path) :]
    match mount.type:
        case "kv" if below.startswith(("data/", "metadata/")):
            return not kv.exists(mount, below)
        case "kubernetes" | "database" | "approle" if "/" in below and "/login" not in below:
            return below not in mount.settings and not below.endswith("secret-id")
        case _:
            return False


def _below(call: Call, prefix: str) -> Call:
    return Call(
        operation=call.operation,
        path=call.path.removeprefix(prefix.rstrip("/")).lstrip("/"),
        query=call.query,
        body=call.body,
        token=call.token,
        now=call.now,
    )
