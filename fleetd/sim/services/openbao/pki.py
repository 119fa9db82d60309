"""The PKI engine, as far as names are concerned: certificates here are text, not cryptography."""

from datetime import timedelta

from fleetd.sim.services.openbao import answers, calls
from fleetd.sim.services.openbao.calls import Call
from fleetd.sim.services.openbao.data import Data, Mount
from fleetd.sim.world import HttpResponse, World


def handle(world: World, data: Data, mount: Mount, call: Call) -> HttpResponse:
    head, _, name = call.path.partition("/")
    match head:
        case "root" if name.startswith("generate/"):
            return _root(world, data, mount, call)
        case "roles":
            return _roles(mount, name, call)
        case "issue" | "sign" if call.operation == "update":
            return _issue(world, data, mount, name, call)
        case "ca" if name == "pem" and call.operation == "read":
            return HttpResponse(
                status=200, body=str(mount.settings.get("root", {}).get("certificate", "")).encode()
            )
        case _:
            raise answers.Refused(404)


def _root(world: World, data: Data, mount: Mount, call: Call) -> HttpResponse:
    common = str(call.body.get("common_name") or "")
    if not common:
        raise answers.Refused(400, "the common_name field is required, or must be provided")
    number = str(data.number("certificate"))
    mount.settings["root"] = {
        "certificate": _pem("CERTIFICATE", world.token(data.cluster_id, "pki", number)),
        "common_name": common,
    }
    return answers.data(
        {"certificate": mount.settings["root"]["certificate"], "serial_number": number}
    )


def _roles(mount: Mount, name: str, call: Call) -> HttpResponse:
    key = f"roles/{name}"
    match call.operation:
        case "list":
            return answers.keys(
                [one.removeprefix("roles/") for one in sorted(mount.settings) if "roles/" in one]
            )
        case "read":
            if key not in mount.settings:
                raise answers.Refused(404)
            return answers.data(mount.settings[key])
        case "delete":
            mount.settings.pop(key, None)
            return answers.nothing()
        case _:
            mount.settings[key] = {**mount.settings.get(key, {}), **call.body}
            return answers.nothing()


def _issue(world: World, data: Data, mount: Mount, name: str, call: Call) -> HttpResponse:
    role = mount.settings.get(f"roles/{name}")
    if role is None:
        raise answers.Refused(400, f"unknown role: {name}")
    root = mount.settings.get("root")
    if root is None:
        raise answers.Refused(400, "no default issuer currently configured")
    common = str(call.body.get("common_name") or "")
    if not _allowed(common, calls.words(role.get("allowed_domains")), role):
        raise answers.Refused(400, f"common name {common} not allowed by this role")
    ttl = calls.seconds(call.body.get("ttl") or role.get("ttl"), 768 * 3600)
    text = world.token(data.cluster_id, "pki", str(data.number("certificate")))
    return answers.data(
        {
            "certificate": _pem("CERTIFICATE", text),
            "issuing_ca": root["certificate"],
            "ca_chain": [root["certificate"]],
            "private_key": _pem("EC PRIVATE KEY", text[::-1]),
            "private_key_type": "ec",
            "serial_number": text[:16],
            "expiration": int((call.now + timedelta(seconds=ttl)).timestamp()),
        }
    )


def _allowed(common: str, domains: list[str], role: dict[str, object]) -> bool:
    if role.get("allow_any_name"):
        return True
    below = bool(role.get("allow_subdomains"))
    return any(
        (bool(role.get("allow_bare_domains")) and common == domain)
        or (below and common.endswith(f".{domain}"))
        for domain in domains
    )


def _pem(kind: str, text: str) -> str:
    return f"-----BEGIN {kind}-----\n{text}\n-----END {kind}-----"
