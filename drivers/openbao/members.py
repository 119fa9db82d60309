"""
OpenBao itself: its release, its members, its initialisation and its seal.

Initialising is one request whose answer holds the only keys, so it goes like this: the Secret for
them is made first, empty, as a claim; then the request; then the keys are put into the Secret. If
putting them fails they stay in memory and are put again. If fleetd dies in between, or the answer
never arrives, nobody has the keys: the claim is found empty while members are sealed, and the only
way on is to throw the store away, which nothing can be in. That is proposed, and needs approval,
because from outside it cannot be told from a store that somebody else has just initialised.

Never a second time: only if every member answers that it is new, and there are no keys. And thrown
away only if every member answers, and none is open: one that is silent may hold it all. Both are
asked of all members again in the step itself, for an approval may come days later.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from drivers.openbao import access, client, manifests
from drivers.openbao.client import Bao
from drivers.openbao.parts import DEADLINE, Part
from fleetd.kube import errors
from fleetd.objects import Manifest
from fleetd.secrets import Secret
from fleetd.vocabulary import Done, Failed, Outcome, Step, make_step
from topology.resource import Facts, Resource

INIT = "initialise"
KEEP = "keep-keys"
UNSEAL = "unseal"
RESET = "reset"
SHARES = 5
THRESHOLD = access.THRESHOLD
ACTIVE, STANDBY, NEW, SEALED = 200, 429, 501, 503
_OPEN = (ACTIVE, STANDBY)

STORED = "stored"
HELD = "held"
"""In memory: they could not be put into the Secret yet."""
CLAIMED = "claimed"
NONE = "none"


class Members(Part):
    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401 - those of Part
        super().__init__(*arguments)
        self._held: dict[str, Secret] = {}
        """Keys that are in no Secret yet, by backend. The one thing this driver must not lose."""

    def check(self, want: Resource) -> Sequence[str]:
        problems = list(super().check(want))
        if not problems and not want.spec["secrets"].get("replicas"):
            problems.append("the spec does not say how many members OpenBao has")
        return problems

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        backend = _backend(want)
        release = Manifest(backend=backend, body=manifests.release(want), why="install OpenBao")
        where = manifests.namespace(str(want.spec["install"]["namespace"]))
        made = [Manifest(backend=backend, body=where, why="make its namespace"), release]
        made += [
            Manifest(
                backend=backend,
                body=manifests.member(want, number),
                why=f"give member {number} an address, so that it can be unsealed",
            )
            for number in range(_replicas(want))
        ]
        return made

    async def look(self, want: Resource, seen: dict[str, Any]) -> dict[str, Any]:
        if not seen:
            return {}
        backend = _backend(want)
        services = await self.tools.clusters.cache(backend, "", "Service")
        main = services.get(access.SERVICE, access.NAMESPACE, by=want.ref)
        spoken = access.url_of(main).partition(":")[0] if main is not None else ""
        pods: list[dict[str, Any]] = []
        for number in range(_replicas(want)):
            service = services.get(f"openbao-{number}", access.NAMESPACE, by=want.ref)
            url = access.url_of(service, spoken) if service is not None and spoken else ""
            code = client.NOT_ANSWERING
            if url:
                code = await self.access.ask_member(want.region, url, Bao.code)
            pods.append({"name": f"openbao-{number}", "url": url, "code": code})
        codes = [pod["code"] for pod in pods]
        facts = {
            "parts": seen["parts"],
            "pods": pods,
            "replicas": _replicas(want),
            "leader": ACTIVE in codes,
            "keys": await self._keys(backend),
        }
        if ACTIVE in codes and facts["keys"] == STORED:
            facts["peers"] = await self.ask(want, Bao.peers)
        return facts

    async def _keys(self, backend: str) -> str:
        if backend in self._held:
            return HELD
        found = await self.access.output(backend)
        if found is None:
            return NONE
        return STORED if found.keys else CLAIMED

    def propose(self, want: Resource, seen: Facts) -> Sequence[Step]:
        if "pods" not in seen:
            return ()
        pods: Sequence[Facts] = seen["pods"]
        codes = [pod["code"] for pod in pods]
        match seen["keys"]:
            case "held":
                why = "put the keys of OpenBao into their Secret"
                args = {"backend": _backend(want)}
                return [make_step(want, KEEP, args, why=why, deadline=DEADLINE)]
            case "stored":
                return [self._unseal(want, pod) for pod in pods if pod["code"] == SEALED]
            case "none" | "claimed" if all(code == NEW for code in codes):
                args = {"backend": _backend(want), "urls": [pod["url"] for pod in pods]}
                why = "initialise OpenBao and keep its keys"
                return [make_step(want, INIT, args, why=why, deadline=DEADLINE, writes=3)]
            case "claimed" if _locked(codes):
                return [self._reset(want, pods)]
            case _:
                return ()

    def _unseal(self, want: Resource, pod: Facts) -> Step:
        args = {"backend": _backend(want), "member": pod["name"], "url": pod["url"]}
        why = f"unseal {pod['name']}: every restarted member must be"
        return make_step(want, UNSEAL, args, why=why, deadline=DEADLINE, writes=THRESHOLD)

    def _reset(self, want: Resource, pods: Sequence[Facts]) -> Step:
        args = {"backend": _backend(want), "urls": [pod["url"] for pod in pods]}
        why = (
            "throw OpenBao's volumes away and begin again: it was initialised, but the answer "
            "with its keys was lost, so nobody can open it. Refuse this if you initialised it "
            f"yourself, and put the keys into Secret {access.NAMESPACE}/{access.KEYS}"
        )
        lost, both = [want.ref], 2 * _replicas(want)
        return make_step(want, RESET, args, why=why, deadline=DEADLINE, destroys=lost, writes=both)

    async def act(self, want: Resource, step: Step) -> Outcome:
        match step.verb:
            case "initialise":
                return await self._initialise(want, step.args)
            case "keep-keys":
                return await self._keep(want, str(step.args["backend"]))
            case "unseal":
                return await self._open(want, step.args)
            case "reset":
                return await self._throw_away(want, step.args)
            case _:
                return await super().act(want, step)

    async def _initialise(self, want: Resource, args: Facts) -> Outcome:
        backend, url = str(args["backend"]), str(args["urls"][0])
        if backend in self._held:
            return await self._keep(want, backend)
        if await self._keys(backend) == STORED:
            return Done()
        codes = await self._codes(want, args)
        if any(code != NEW for code in codes):
            said = f"not every member says that it is new any more: {_listed(codes)}"
            return Failed("NotNew", said, retry=True)
        if await self._claim(want, backend):
            return Done()
        asked = {"secret_shares": SHARES, "secret_threshold": THRESHOLD}
        try:
            answer = await self.access.ask_member(
                want.region, url, lambda bao: bao.ask("put", "sys/init", asked)
            )
        except client.Refused as cause:
            return Failed("AlreadyInitialised", str(cause), retry=True)
        self._held[backend] = Secret(msgspec.json.encode(_output(answer)).decode())
        return await self._keep(want, backend)

    async def _claim(self, want: Resource, backend: str) -> bool:
        """Makes the Secret. True: it is there and has the keys already."""
        kube = self.tools.clusters.client(backend)
        kind = await kube.find("", "Secret")
        try:
            await kube.create(kind, manifests.claim(want))
        except errors.AlreadyExists:
            found = await self.access.output(backend)
            return found is not None and bool(found.keys)
        return False

    async def _keep(self, want: Resource, backend: str) -> Outcome:
        held = self._held.get(backend)
        if held is None:
            return Done()
        kube = self.tools.clusters.client(backend)
        kind = await kube.find("", "Secret")
        value = base64.b64encode(held.reveal().encode()).decode()
        change = {"data": {access.INIT_OUTPUT: value}}
        try:
            await kube.patch(kind, access.KEYS, change, access.NAMESPACE)
        except errors.NotFound:
            # Somebody deleted the claim; the keys are worth more than the question why.
            await kube.create(kind, {**manifests.claim(want), **change})
        del self._held[backend]
        return Done()

    async def _open(self, want: Resource, args: Facts) -> Outcome:
        found = await self.access.output(str(args["backend"]))
        if found is None or not found.keys:
            return Failed("NoKeys", "there are no keys to unseal it with", retry=True)
        keys = found.keys[: found.threshold]

        def unseal(bao: Bao) -> None:
            if bao.code() in _OPEN:
                return
            for key in keys:
                bao.ask("put", "sys/unseal", {"key": key.reveal()})

        await self.access.ask_member(want.region, str(args["url"]), unseal)
        return Done()

    async def _codes(self, want: Resource, args: Facts) -> list[int]:
        """What each member says now."""
        return [
            await self.access.ask_member(want.region, str(url), Bao.code) for url in args["urls"]
        ]

    async def _throw_away(self, want: Resource, args: Facts) -> Outcome:
        """The claims of the volumes first; they go when the pods let go of them."""
        backend = str(args["backend"])
        held, codes = await self._keys(backend), await self._codes(want, args)
        if held != CLAIMED or not _locked(codes):
            said = f"its keys are {held} now, and its members answer {_listed(codes)}; it stays"
            return Failed("NotLost", said, retry=True)
        kube = self.tools.clusters.client(backend)
        for what, prefix in (("PersistentVolumeClaim", "data-"), ("Pod", "")):
            kind = await kube.find("", what)
            for number in range(len(codes)):
                await kube.delete(kind, f"{prefix}openbao-{number}", access.NAMESPACE)
        return Done()


def _locked(codes: Sequence[int]) -> bool:
    """Whether nobody can open it, of a store whose keys are lost."""
    return SEALED in codes and all(code in (SEALED, NEW) for code in codes)


def _listed(codes: Sequence[int]) -> str:
    return ", ".join(str(code) if code else "nothing" for code in codes)


def _output(answer: Mapping[str, Any]) -> dict[str, Any]:
    """As `bao operator init -format=json` writes it, which is what people's tools read."""
    return {
        "unseal_keys_b64": answer["keys_base64"],
        "unseal_keys_hex": answer["keys"],
        "unseal_shares": SHARES,
        "unseal_threshold": THRESHOLD,
        "root_token": answer["root_token"],
    }


def _backend(want: Resource) -> str:
    return f"cluster:{want.spec['cluster']}"


def _replicas(want: Resource) -> int:
    return int(want.spec["secrets"]["replicas"])
