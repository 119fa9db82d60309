"""
What may be told of a credential that lies in a Secret: when it was made, when it ends, and the
serial number of a certificate. Never a value.

Pure. Drivers put it into the facts as `observed.credentials.<name>`; the ledger reads it there and
shows these fields and no others. Which version a user was seen with is told by the user, as
`observed.uses.<name>`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cryptography import x509

from fleetd.kube import kubeconfig
from fleetd.kube.secretview import SecretView
from fleetd.secrets import Secret

CERTIFICATE = "tls.crt"


def moment(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def of_secret(secret: SecretView) -> dict[str, Any]:
    """`madeAt`, and `expires` and `version` where they are known."""
    found: dict[str, Any] = {"madeAt": changed(secret)}
    ends = secret.annotations.get(kubeconfig.EXPIRES)
    if ends:
        found |= {"expires": ends, "version": ends}
    if CERTIFICATE in secret.values:
        found |= _of_certificate(secret.values[CERTIFICATE])
    return {key: value for key, value in found.items() if value}


def changed(secret: SecretView) -> str:
    """When its data last changed, by who notes such things; else when it was made."""
    entries: list[Mapping[str, Any]] = secret.metadata.get("managedFields") or []
    times = [str(one.get("time", "")) for one in entries if "f:data" in one.get("fieldsV1", {})]
    return max(times, default="") or str(secret.metadata.get("creationTimestamp", ""))


def _of_certificate(pem: Secret) -> dict[str, Any]:
    """Empty if it is none: what others keep in their Secrets is theirs to explain."""
    try:
        read = x509.load_pem_x509_certificate(pem.reveal().encode())
    except ValueError:
        return {}
    return {
        "version": f"{read.serial_number:x}",
        "madeAt": moment(read.not_valid_before_utc),
        "expires": moment(read.not_valid_after_utc),
    }
