"""
A watch as a server sent it, replayed to whoever asks: `python -m bench.kubereplay FILE`.

A real server sends each event when it has it, and on a small machine the reader wakes up for each
one; then waking up is all that is measured. Here the same lines are there at once, in chunks of one
line as API servers send them, over TLS, and several times, so that opening the connection does not
count. A list comes as the server sent it, in one piece or in pages. FILE holds all of it; the
kubeconfig is printed.
"""

import contextlib
import json
import socket
import ssl
import sys
import threading
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from subprocess import PIPE, Popen
from urllib.parse import parse_qs, urlsplit

import msgspec

from fleetd.kube.pages import SHORT_KIND
from fleetd.secrets import Secret
from fleetd.sim.faces import certificates
from fleetd.sim.kube import access

RESOURCES = {"resources": [{"name": "nodes", "kind": "Node", "namespaced": False}]}
PIECE = 256 * 1024
TIMES = 4
"""So often come the same lines in one watch."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


class Recorded(msgspec.Struct):
    lines: list[bytes]
    whole: bytes
    """A list in one piece."""
    pages: dict[str, bytes]
    """The same in pages, by what they continue."""
    short: dict[str, bytes]
    """And with no more than the metadata."""

    def watched(self) -> bytes:
        """A chunk for each line."""
        return b"".join(b"%x\r\n%b\n\r\n" % (len(line) + 1, line) for line in self.lines)

    def wire_size(self) -> int:
        """Bytes of a whole watch."""
        return len(HEAD) + TIMES * len(self.watched())


@contextlib.contextmanager
def replayed(recorded: "Recorded", folder: Path) -> Generator[Secret]:
    path = folder / "recorded"
    path.write_bytes(msgspec.msgpack.encode(recorded))
    command = [sys.executable, "-m", "bench.kubereplay", str(path)]
    with Popen(command, stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield Secret(process.stdout.readline().decode())
        finally:
            process.stdin.close()
            process.wait(10)


def _serve(path: Path) -> None:
    recorded = msgspec.msgpack.decode(path.read_bytes(), type=Recorded)
    watched = recorded.watched()
    trust = certificates.loopback(datetime.now(UTC))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        where = f"https://127.0.0.1:{listening.getsockname()[1]}"
        print(json.dumps(access.kubeconfig("replay", where, "token", trust.authority)), flush=True)
        arguments = (listening, trust.tls, recorded, watched)
        threading.Thread(target=_accept, args=arguments, daemon=True).start()
        sys.stdin.read()


def _accept(
    listening: socket.socket, tls: ssl.SSLContext, recorded: Recorded, watched: bytes
) -> None:
    """Each in a thread of its own: a client may keep a connection while it opens another."""
    while True:
        plain = listening.accept()[0]
        threading.Thread(target=_talk, args=(plain, tls, recorded, watched), daemon=True).start()


def _talk(plain: socket.socket, tls: ssl.SSLContext, recorded: Recorded, watched: bytes) -> None:
    with contextlib.suppress(OSError), tls.wrap_socket(plain, server_side=True) as connection:
        while asked := connection.recv(65536).decode("latin-1"):
            parts = urlsplit(asked.split(" ")[1])
            query = parse_qs(parts.query)
            if "watch" in query:
                _send(connection, HEAD)
                for _ in range(TIMES):
                    _send(connection, watched)
                continue
            if not parts.path.endswith("/nodes"):
                found = json.dumps(RESOURCES).encode()
            elif "limit" in query:
                pages = recorded.short if SHORT_KIND in asked else recorded.pages
                found = pages[query.get("continue", [""])[0]]
            else:
                found = recorded.whole
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(found)}\r\n\r\n"
            _send(connection, head.encode())
            _send(connection, found)


def _send(connection: ssl.SSLSocket, content: bytes) -> None:
    for start in range(0, len(content), PIECE):
        connection.sendall(content[start : start + PIECE])


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
