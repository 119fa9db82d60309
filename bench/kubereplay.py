"""
A watch as a server sent it, replayed to whoever asks: `python -m bench.kubereplay FILE`.

A real server sends each event when it has it, and on a small machine the reader wakes up for each
one; then waking up is all that is measured. Here the same lines are there at once, in chunks of one
line as API servers send them, over TLS. FILE holds the lines; the kubeconfig is printed.
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

from fleetd.secrets import Secret
from fleetd.sim.faces import certificates
from fleetd.sim.kube import access

RESOURCES = {"resources": [{"name": "nodes", "kind": "Node", "namespaced": False}]}
PIECE = 256 * 1024


@contextlib.contextmanager
def replayed(lines: list[bytes], folder: Path) -> Generator[Secret]:
    path = folder / "lines"
    path.write_bytes(b"\n".join(lines) + b"\n")
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
    content = path.read_bytes()
    body = b"".join(
        b"%x\r\n%b\r\n" % (len(line), line) for line in content.splitlines(keepends=True)
    )
    trust = certificates.loopback(datetime.now(UTC))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        where = f"https://127.0.0.1:{listening.getsockname()[1]}"
        print(json.dumps(access.kubeconfig("replay", where, "token", trust.authority)), flush=True)
        threading.Thread(target=_accept, args=(listening, trust.tls, body), daemon=True).start()
        sys.stdin.read()


def _accept(listening: socket.socket, tls: ssl.SSLContext, body: bytes) -> None:
    while True:
        with (
            contextlib.suppress(OSError),
            tls.wrap_socket(listening.accept()[0], server_side=True) as connection,
        ):
            _answer(connection, body)


def _answer(connection: ssl.SSLSocket, body: bytes) -> None:
    while asked := connection.recv(65536):
        if b"watch=" not in asked:
            found = json.dumps(RESOURCES).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(found)}\r\nConnection: close\r\n\r\n"
            connection.sendall(head.encode() + found)
            return
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        for start in range(0, len(body), PIECE):
            connection.sendall(body[start : start + PIECE])


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
