"""Kubernetes auth of the simulated OpenBao: every answer of the facts' table, and its traps."""

import asyncio
from datetime import timedelta
from typing import Any

import hvac.exceptions
import pytest

from tests.drivers.openbao.stage import authority
from tests.sim.test_openbao import Bench, played

MOUNT = "kubernetes/hv"


class Logins(Bench):
    """Two clusters; `hv` has a mount, with a reviewer that may review."""

    async def furnish(self) -> Any:
        for name in ("hv", "st"):
            cluster = self.world.add_cluster(name)
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "es"}}
            cluster.apply(space, manager="test")
            published = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "kube-root-ca.crt", "namespace": "kube-system"},
                "data": {"ca.crt": authority(name)},
            }
            cluster.apply(published, manager="test")
            for account in ("es", "other", "reviewer"):
                self.account(name, account)
        client = await self.open()
        client.sys.enable_auth_method("kubernetes", path=MOUNT)
        return client

    def account(self, cluster: str, name: str) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": "es"},
        }
        self.world.clusters[cluster].apply(body, manager="test")

    def bind(self, *, role: str = "system:auth-delegator") -> None:
        body = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "reviewer"},
            "roleRef": {"kind": "ClusterRole", "name": role, "apiGroup": ""},
            "subjects": [{"kind": "ServiceAccount", "name": "reviewer", "namespace": "es"}],
        }
        self.world.clusters["hv"].apply(body, manager="test")

    def jwt(self, cluster: str, name: str, *audiences: str) -> str:
        there = self.world.clusters[cluster]
        found = there.get(("", "ServiceAccount"), name, "es")
        assert found is not None
        return there.tokens.issue(
            f"system:serviceaccount:es:{name}",
            (),
            expires=self.world.now() + timedelta(hours=1),
            audiences=audiences,
            account=("es", name, found["metadata"]["uid"]),
        )

    def configure(self, client: Any, **changes: Any) -> None:
        body = {
            "kubernetes_host": self.world.address("hv"),
            "kubernetes_ca_cert": authority("hv"),
            "token_reviewer_jwt": self.jwt("hv", "reviewer"),
            "disable_local_ca_jwt": True,
            **changes,
        }
        client.adapter.post(f"/v1/auth/{MOUNT}/config", json=body)

    def role(self, client: Any, **more: Any) -> None:
        body = {
            "bound_service_account_names": "es",
            "bound_service_account_namespaces": "es",
            "token_policies": "some",
            **more,
        }
        client.adapter.post(f"/v1/auth/{MOUNT}/role/r", json=body)

    def login(self, jwt: str, role: str = "r", mount: str = MOUNT) -> Any:
        body = {"role": role, "jwt": jwt}
        return self.client().adapter.post(f"/v1/auth/{mount}/login", json=body)["auth"]

    def refusal(self, jwt: str, role: str = "r", mount: str = MOUNT) -> str:
        with pytest.raises(hvac.exceptions.VaultError) as caught:
            self.login(jwt, role, mount)
        return f"{type(caught.value).__name__}: {caught.value.args[0]}"


def _played(story: Any) -> None:
    async def run(_: Bench) -> None:
        bench = Logins()
        client = await bench.furnish()
        await story(bench, client)
        assert bench.world.failures == []

    played(run)


def test_a_good_token_logs_in() -> None:
    """With the role's policies and `default`, under a name that says who it is."""

    async def story(bench: Logins, client: Any) -> None:
        bench.bind()
        bench.configure(client)
        bench.role(client, audience="openbao")
        granted = bench.login(bench.jwt("hv", "es", "openbao"))
        assert granted["policies"] == ["default", "some"]

    _played(story)


def test_each_refusal_has_its_answer() -> None:
    """Most causes look alike; those that do not have the real one's words."""

    async def story(bench: Logins, client: Any) -> None:
        good = bench.jwt("hv", "es", "openbao")
        bench.role(client, audience="openbao")
        unconfigured = bench.refusal(good)
        bench.configure(client)
        unbound = bench.refusal(good)
        bench.bind()
        denied = "Forbidden: permission denied"
        assert unconfigured == "InternalServerError: could not load backend configuration"
        assert unbound == denied
        assert bench.refusal(bench.jwt("st", "es", "openbao")) == denied
        assert bench.refusal("garbage") == denied
        assert bench.refusal(good, mount="kubernetes/nope") == denied
        assert bench.refusal(good, role="nope") == 'InvalidRequest: invalid role name "nope"'
        assert bench.refusal(bench.jwt("hv", "other", "openbao")).endswith("name not authorized")
        assert "invalid audience (aud) claim" in bench.refusal(bench.jwt("hv", "es", "else"))

    _played(story)


def test_a_role_without_an_audience_takes_any_token() -> None:
    """The trap: a token meant for somebody else opens OpenBao."""

    async def story(bench: Logins, client: Any) -> None:
        bench.bind()
        bench.configure(client)
        bench.role(client)
        assert bench.login(bench.jwt("hv", "es", "somebody-else"))["client_token"]

    _played(story)


def test_a_wrong_authority_goes_unnoticed_while_a_connection_lives() -> None:
    """And is noticed once the connection has been idle for long."""

    async def story(bench: Logins, client: Any) -> None:
        bench.bind()
        bench.configure(client)
        bench.role(client, audience="openbao")
        bench.login(bench.jwt("hv", "es", "openbao"))
        bench.configure(client, kubernetes_ca_cert=authority("somebody"))
        unnoticed = bench.login(bench.jwt("hv", "es", "openbao"))
        await asyncio.sleep(200)
        assert unnoticed["client_token"]
        assert bench.refusal(bench.jwt("hv", "es", "openbao")) == "Forbidden: permission denied"

    _played(story)


def test_a_deleted_account_logs_in_for_ten_seconds_more() -> None:
    """The API server remembers whom it has seen."""

    async def story(bench: Logins, client: Any) -> None:
        bench.bind()
        bench.configure(client)
        bench.role(client, audience="openbao")
        jwt = bench.jwt("hv", "es", "openbao")
        bench.world.clusters["hv"].delete(("", "ServiceAccount"), "es", "es")
        soon = bench.login(jwt)
        await asyncio.sleep(11)
        assert soon["client_token"]
        assert bench.refusal(jwt) == "Forbidden: permission denied"

    _played(story)


def test_a_config_needs_the_authority() -> None:
    """In the words of the real one."""

    async def story(bench: Logins, client: Any) -> None:
        with pytest.raises(hvac.exceptions.InvalidRequest, match="kubernetes_ca_cert must be"):
            bench.configure(client, kubernetes_ca_cert="")

    _played(story)
