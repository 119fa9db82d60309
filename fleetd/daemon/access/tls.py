"""
TLS of the HTTP server, with files that are read again when they change.

The listening socket keeps one context for good; each handshake is led to the newest one. A file
that became bad changes nothing and is complained about: the old certificate still opens.
"""

import asyncio
import ssl
from datetime import timedelta
from pathlib import Path

import structlog

from fleetd import errors
from fleetd.daemon.access.marks import mark

_log = structlog.stdlib.get_logger("fleetd.access")

EVERY = timedelta(seconds=2)


class Tls:
    def __init__(self, certificate: Path, key: Path, clients: Path | None) -> None:
        """Reads the files; raises SettingsError. `clients`: whose certificates are believed."""
        self._certificate, self._key, self._clients = certificate, key, clients
        self._marks = self._look()
        self.context = self._newest = self._made()
        self.complaint = ""

        def lead(handshake: ssl.SSLObject, _name: str | None, _first: ssl.SSLContext) -> None:
            handshake.context = self._newest

        self.context.sni_callback = lead

    def _look(self) -> tuple[object, ...]:
        files = (self._certificate, self._key, self._clients)
        return tuple(mark(one) for one in files if one is not None)

    def _made(self) -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        made.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        # Who takes up a session again is not looked at again, also when his authority was taken
        # away meanwhile; the first context would open its tickets, whatever the newest says.
        made.options |= ssl.OP_NO_TICKET
        made.num_tickets = 0
        try:
            made.load_cert_chain(self._certificate, self._key, password=_none)
            if self._clients is not None:
                made.load_verify_locations(self._clients)
                made.verify_mode = ssl.CERT_OPTIONAL
        except (OSError, ValueError) as cause:
            raise errors.SettingsError(
                f"tls: {self._certificate}, its key or the authorities of clients: {cause}"
            ) from None
        return made

    async def run(self) -> None:
        while True:
            await asyncio.sleep(EVERY.total_seconds())
            await self.look()

    async def look(self) -> None:
        marks = await asyncio.to_thread(self._look)
        if marks == self._marks:
            return
        try:
            # Pairs are replaced one file after the other; in between they do not fit together.
            self._newest = await asyncio.to_thread(self._made)
        except errors.SettingsError as wrong:
            if self.complaint != str(wrong):
                _log.error("certificate not taken", why=str(wrong))
            self.complaint = str(wrong)
            return
        self._marks, self.complaint = marks, ""
        _log.info("certificate taken", file=str(self._certificate))


def _none() -> str:
    """Instead of asking a terminal for a key's password."""
    raise ValueError("the key has a password; store it without one, readable by fleetd only")
