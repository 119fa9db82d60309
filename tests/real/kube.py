"""
A real Kubernetes API on loopback: etcd, kube-apiserver, and kube-controller-manager if wanted.

No nodes and no scheduler: pods stay Pending. Every connection is over TLS with both sides checked,
RBAC is on, and the data live in the folder that is given. The rule: whoever starts one stops it.
"""

import base64
import http.client
import json
import ssl
from pathlib import Path
from typing import Any, Self

from tests.real import build, certs, process
from tests.real.certs import Authority, Pair
from tests.real.process import Running

READY = 90.0
"""Seconds. Five on an idle machine; one that builds something else as well takes its time."""
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
)
"""Those whose work our claims are about. The rest would wait for nodes."""
PUBLIC = (
    *("/healthz", "/livez", "/readyz", "/version"),
    *("/.well-known/openid-configuration", "/openid/v1/jwks"),
)
MASTERS = "system:masters"
FRONT = "front-proxy"


def programs(*, controllers: bool) -> tuple[str, ...]:
    return ("etcd", "kube-apiserver", *(("kube-controller-manager",) if controllers else ()))


class Kube:
    def __init__(
        self,
        folder: Path,
        *,
        controllers: bool = True,
        guests: Authority | None = None,
        believes: str = "",
    ) -> None:
        """`guests`: another authority whose people are let in, as a garden's are into a Shoot.
        `believes`: the AuthenticationConfiguration, instead of one that believes nobody else."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self.running: list[Running] = []
        self.controllers = controllers
        self.paths = {one.name: one.path for one in build.programs()}
        self.authority = Authority(folder, "ca")
        self._front = Authority(folder, "front-proxy-ca")
        self.port, self.etcd_port, self._peer_port, self._manager_port = process.free_ports(4)
        self._guests = guests
        self._believes = believes
        self.server = f"https://127.0.0.1:{self.port}"
        self.admin = self.authority.client("admin", [MASTERS])

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_ignored: object) -> None:
        self.stop()

    def start(self) -> None:
        self.begin()
        self.finish()

    def begin(self) -> None:
        """Starts what can start at once, and does not wait: several may begin together."""
        self._accounts = certs.signing_key(self.folder / "accounts.key")
        self._etcd()
        self._have_a_past()
        self._server()

    def finish(self) -> None:
        """Waits until it serves."""
        self.running[1].until(lambda: self.get("/readyz")[0] == 200, READY)
        if self.controllers:
            self._controllers()
        self.write_kubeconfig("admin")

    def stop(self) -> None:
        """The last one that was started first."""
        for one in reversed(self.running):
            one.ask_to_end()
        for one in reversed(self.running):
            one.stop()
        self.running.clear()

    def run(self, name: str, *arguments: str) -> Running:
        one = Running(name, self.paths[name], arguments, self.folder)
        self.running.append(one)
        return one

    def etcd_options(self) -> list[str]:
        """For a server that keeps its objects in our etcd."""
        client = self.authority.client("etcd-client")
        return [
            f"--etcd-servers=https://127.0.0.1:{self.etcd_port}",
            f"--etcd-cafile={self.authority.certificate}",
            f"--etcd-certfile={client.certificate}",
            f"--etcd-keyfile={client.key}",
        ]

    def _etcd(self) -> None:
        pair, trusted = self.authority.both("etcd"), self.authority.certificate
        clients, peers = (f"https://127.0.0.1:{n}" for n in (self.etcd_port, self._peer_port))
        self.run(
            "etcd",
            f"--data-dir={self.folder / 'etcd.data'}",
            "--name=lab",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=lab={peers}",
            f"--cert-file={pair.certificate}",
            f"--key-file={pair.key}",
            f"--trusted-ca-file={trusted}",
            "--client-cert-auth",
            f"--peer-cert-file={pair.certificate}",
            f"--peer-key-file={pair.key}",
            f"--peer-trusted-ca-file={trusted}",
            "--peer-client-cert-auth",
            "--unsafe-no-fsync",  # nobody needs these data after a power cut
            "--log-level=warn",
        )

    def _have_a_past(self) -> None:
        """A server over an etcd that was always empty forgets nothing, and nobody would ever be
        told that the version he has is too old."""
        path, body = "/v3/kv/put", {"key": _base64(b"past"), "value": _base64(b"gone")}
        for _ in range(3):
            self.running[0].until(
                lambda: self.send("POST", path, body, port=self.etcd_port)[0] == 200, READY
            )

    def _who_may_come(self) -> Path:
        """Whoever shows nothing may ask how the server is and what its keys are, and no more: as a
        hardened server has it. Otherwise they would be somebody, and forbidden instead of
        unauthorized."""
        path = self.folder / "authentication.json"
        anonymous = {"enabled": True, "conditions": [{"path": one} for one in PUBLIC]}
        kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}
        usual = json.dumps({**kind, "anonymous": anonymous})
        path.write_text(self._believes or usual, "utf-8")
        return path

    def _whose_people(self) -> Path:
        path = self.folder / "clients.crt"
        known = (self.authority, *filter(None, [self._guests]))
        path.write_bytes(b"".join(one.certificate.read_bytes() for one in known))
        return path

    def _server(self) -> None:
        serving = self.authority.server("kube-apiserver", "kubernetes.default.svc")
        front = self._front.client(FRONT)
        self.run(
            "kube-apiserver",
            *self.etcd_options(),
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            f"--client-ca-file={self._whose_people()}",
            f"--authentication-config={self._who_may_come()}",
            "--authorization-mode=RBAC",
            f"--service-account-key-file={self._accounts}",
            f"--service-account-signing-key-file={self._accounts}",
            f"--service-account-issuer={self.server}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--endpoint-reconciler-type=none",
            f"--requestheader-client-ca-file={self._front.certificate}",
            f"--requestheader-allowed-names={FRONT}",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={front.certificate}",
            f"--proxy-client-key-file={front.key}",
            "--profiling=false",
        )

    def _controllers(self) -> None:
        config = self.write_kubeconfig("kube-controller-manager", [MASTERS])
        self.run(
            "kube-controller-manager",
            f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._manager_port}",
            f"--controllers={','.join(CONTROLLERS)}",
            f"--service-account-private-key-file={self._accounts}",
            f"--root-ca-file={self.authority.certificate}",
            "--leader-elect=false",
            "--profiling=false",
        ).until(self._controlled, READY)

    def _controlled(self) -> bool:
        """The first thing that only controllers do has been done."""
        path = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"
        return self.get(path)[0] == 200

    # For clients

    def kubeconfig(self, *, token: str | None = None, pair: Pair | None = None) -> dict[str, Any]:
        """For whoever has this token, or this certificate; for nobody if neither is given."""
        user: dict[str, str] = {}
        if pair is not None:
            user["client-certificate-data"] = _inline(pair.certificate)
            user["client-key-data"] = _inline(pair.key)
        if token:
            user["token"] = token
        cluster = {
            "server": self.server,
            "certificate-authority-data": _inline(self.authority.certificate),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": "lab", "user": user}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
            "current-context": "lab",
        }

    def write_kubeconfig(self, name: str, groups: list[str] | None = None) -> Path:
        """A file for this user, who is the administrator or gets a certificate of its own."""
        pair = self.admin if name == "admin" else self.authority.client(name, groups or ())
        path = self.folder / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(self.kubeconfig(pair=pair)), "utf-8")
        return path

    def get(self, path: str) -> tuple[int, bytes]:
        return self.send("GET", path)

    def send(
        self, method: str, path: str, body: object = None, *, port: int = 0
    ) -> tuple[int, bytes]:
        """As the administrator; status 0 while nobody answers."""
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        context.load_cert_chain(self.admin.certificate, self.admin.key)
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port or self.port, context=context, timeout=30
        )
        try:
            connection.request(
                method,
                path,
                body=None if body is None else json.dumps(body),
                headers={"Content-Type": "application/json"},
            )
            answer = connection.getresponse()
            return answer.status, answer.read()
        except OSError:
            return 0, b""
        finally:
            connection.close()


def _inline(path: Path) -> str:
    return _base64(path.read_bytes())


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
