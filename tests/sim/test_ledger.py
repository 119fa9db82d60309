"""The ledger: which requests changed the world, and on whose announcement."""

import pytest
import structlog

from fleetd.sim import ledger
from fleetd.sim.ledger import Ledger

MAPS = "/api/v1/namespaces/default/configmaps"
SHOOT = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-x/shoots/hv"
AUTH = "/apis/authentication.k8s.io/v1"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", MAPS),
        ("PUT", f"{MAPS}/a"),
        ("PATCH", f"{MAPS}/a"),
        ("DELETE", f"{MAPS}/a"),
        ("PATCH", SHOOT),
        ("PUT", f"{SHOOT}/status"),
        ("POST", "/v1/sys/init"),
        ("PUT", "/v1/sys/unseal"),
        ("POST", "/v1/auth/token/create"),
        ("POST", "/v1/auth/approle/role/fleetd"),
        ("POST", "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"),
        ("PUT", "/api/v1/namespaces/default/secrets/token"),
        ("DELETE", "/api/v1/namespaces/default/secrets/adminkubeconfig"),
    ],
)
def test_what_lasts_is_a_write(method: str, path: str) -> None:
    """Also of an object that only has the name of a login."""
    assert ledger.changes(method, path)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", MAPS),
        ("HEAD", "/healthz"),
        ("OPTIONS", "/"),
        ("LIST", "/v1/kv-v2/metadata/"),
        ("POST", f"{SHOOT}/adminkubeconfig"),
        ("POST", f"{SHOOT}/viewerkubeconfig"),
        ("POST", "/api/v1/namespaces/x/serviceaccounts/fleetd/token"),
        ("POST", f"{AUTH}/tokenreviews"),
        ("POST", f"{AUTH}/selfsubjectreviews"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ("POST", "/v1/auth/kubernetes/login"),
        ("POST", "/v1/auth/token/renew-self"),
        ("POST", "/v3/auth/tokens"),
    ],
)
def test_a_read_or_a_login_is_none(method: str, path: str) -> None:
    """Logging in and asking what one may do leave the world as it was."""
    assert not ledger.changes(method, path)


def test_only_writes_that_were_taken_are_deeds() -> None:
    """Every request counts; a refused write changed nothing."""
    kept = Ledger()
    kept.note(1.0, "hv", "GET", MAPS, 200)
    kept.note(2.0, "hv", "POST", MAPS, 409)
    kept.note(3.0, "hv", "POST", MAPS, 201)
    kept.note(4.0, "cp", "POST", f"{AUTH}/tokenreviews", 201)

    assert [(deed.at, deed.where, deed.status) for deed in kept.deeds] == [(3.0, "hv", 201)]
    assert kept.requests == {"hv": 3, "cp": 1}
    assert kept.summary() == {("hv", "POST", MAPS): 1}


def test_the_step_is_that_of_the_call_under_way() -> None:
    """A deed has the step that is bound while it is done; without one it is unannounced."""
    kept = Ledger()
    with structlog.contextvars.bound_contextvars(step="s-1"):
        kept.note(1.0, "hv", "POST", MAPS, 201)
    kept.note(2.0, "hv", "DELETE", f"{MAPS}/a", 200)

    assert [deed.step for deed in kept.deeds] == ["s-1", ""]
    assert [str(deed) for deed in kept.unannounced()] == [f"2.0 hv DELETE {MAPS}/a -> 200 []"]


def test_what_is_new_since_a_count() -> None:
    """Only what came after."""
    kept = Ledger()
    for name in ("a", "b", "c"):
        kept.note(1.0, "hv", "DELETE", f"{MAPS}/{name}", 200)

    assert [deed.path[-1] for deed in kept.since(1)] == ["b", "c"]
