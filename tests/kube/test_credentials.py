"""What a Secret tells of the credential in it: its age, its end, its serial number."""

import base64
from datetime import UTC, datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from fleetd.kube import credentials
from fleetd.kube.secretview import SecretView

BORN = {"creationTimestamp": "2026-03-01T00:00:00Z"}


def test_its_age_is_that_of_its_data() -> None:
    """Not that of a label; and where nobody noted it, that of the Secret."""
    fields: list[dict[str, Any]] = [
        {"time": "2026-03-02T00:00:00Z", "fieldsV1": {"f:data": {}}},
        {"time": "2026-03-09T00:00:00Z", "fieldsV1": {"f:metadata": {}}},
    ]
    noted = credentials.of_secret(SecretView.of({"metadata": {**BORN, "managedFields": fields}}))
    assert noted == {"madeAt": "2026-03-02T00:00:00Z"}
    assert credentials.of_secret(SecretView.of({"metadata": BORN})) == {
        "madeAt": "2026-03-01T00:00:00Z"
    }


def test_a_certificate_tells_its_serial_number_and_its_end() -> None:
    """What is no certificate tells nothing."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "openbao")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(0xABC)
        .not_valid_before(datetime(2026, 3, 1, tzinfo=UTC))
        .not_valid_after(datetime(2026, 5, 1, tzinfo=UTC))
        .sign(key, hashes.SHA256())
    )
    pem = base64.b64encode(made.public_bytes(Encoding.PEM)).decode()
    found = credentials.of_secret(SecretView.of({"metadata": BORN, "data": {"tls.crt": pem}}))
    assert found == {
        "version": "abc",
        "madeAt": "2026-03-01T00:00:00Z",
        "expires": "2026-05-01T00:00:00Z",
    }
    other = {"metadata": BORN, "data": {"tls.crt": base64.b64encode(b"none").decode()}}
    assert credentials.of_secret(SecretView.of(other)) == {"madeAt": "2026-03-01T00:00:00Z"}
