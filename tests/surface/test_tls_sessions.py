"""TLS sessions are not taken up again: each client is looked at anew."""

import asyncio
import contextlib
import ssl
from pathlib import Path
from typing import Any, cast

import pytest

from fleetd.daemon.access.tls import Tls
from tests.real import certs


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_of_before_opens_nothing(tmp_path: Path, version: ssl.TLSVersion) -> None:
    """Whoever came with a certificate of an authority that is not believed any more cannot take up
    his session of then, in which he was."""
    old = certs.Authority(tmp_path, "old")
    (tmp_path / "new").mkdir()
    new = certs.Authority(tmp_path / "new", "new")
    served, trusted, ada = old.server("fleetd"), tmp_path / "clients.pem", old.client("ada")
    trusted.write_bytes(old.certificate.read_bytes())
    tls = Tls(served.certificate, served.key, trusted)
    client = ssl.create_default_context(cafile=str(old.certificate))
    client.load_cert_chain(ada.certificate, ada.key)
    client.maximum_version = version

    first, session = _handshake(tls.context, client, None)
    assert first == "ada"
    trusted.write_bytes(new.certificate.read_bytes())
    asyncio.run(tls.look())

    assert tls.complaint == ""
    with pytest.raises(ssl.SSLError):
        _handshake(tls.context, client, session)


def _handshake(
    server: ssl.SSLContext, client: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[str, ssl.SSLSession | None]:
    """Who the server says came, and the session that the client may take up later."""
    ways = [ssl.MemoryBIO() for _ in range(4)]
    there = server.wrap_bio(ways[0], ways[1], server_side=True)
    here = client.wrap_bio(ways[2], ways[3], server_hostname="127.0.0.1", session=session)
    for _ in range(4):
        for side in (here, there):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
            for said, heard in ((ways[3], ways[0]), (ways[1], ways[2])):
                heard.write(said.read())
    there.write(b"x")
    ways[2].write(ways[1].read())
    here.read(1)
    told = cast("Any", there.getpeercert())["subject"]
    return dict(one[0] for one in told)["commonName"], here.session
