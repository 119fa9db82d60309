"""`fleetctl token new`, and tokens that `fleetctl` sends."""

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from click.testing import CliRunner

from fleetd.cli import client, main
from fleetd.cli.ending import Exit, Stop
from fleetd.cli.frame import Frame
from fleetd.clock import SystemClock
from fleetd.daemon.access import rules, tokens
from fleetd.daemon.access.guard import GuardedDoor
from fleetd.settings import Address
from fleetd.surface import http
from tests.surface import panels


def test_a_new_token_is_shown_once_and_kept_as_a_digest(tmp_path: Path) -> None:
    """It goes to stdout; the file has what the daemon needs, and keeps what it had."""
    path = tmp_path / "access.toml"
    words = ["token", "new", "ci", "--role", "operator", "--region", "eu-1", "--into", str(path)]
    first = CliRunner().invoke(main.fleetctl, words)
    second = CliRunner().invoke(main.fleetctl, ["token", "new", "bob", "--into", str(path)])
    assert (first.exit_code, second.exit_code) == (0, 0)
    token = first.stdout.strip()
    assert re.fullmatch(r"fleetd_[\w-]{43}", token)
    assert token not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    one, other = rules.read(path).tokens
    assert (one.name, one.role, one.regions) == ("ci", "operator", ("eu-1",))
    assert (one.sha256, other.name, other.role) == (tokens.digest(token), "bob", "viewer")


def test_a_bad_entry_changes_nothing(tmp_path: Path) -> None:
    """A name that is taken is refused, and the file is as it was."""
    path = tmp_path / "access.toml"
    words = ["token", "new", "ci", "--into", str(path)]
    CliRunner().invoke(main.fleetctl, words)
    before = path.read_text()
    again = CliRunner().invoke(main.fleetctl, words)
    assert isinstance(again.exception, Stop)
    assert "two tokens are called ci" in str(again.exception)
    assert [one.read_text() for one in tmp_path.iterdir()] == [before]


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncGenerator[tuple[str, Path]]:
    """The address of a server, and a file with a token of a viewer."""
    token, access = tokens.new(), tmp_path / "access.toml"
    access.write_text(
        f'[[tokens]]\nname = "a"\nsha256 = "{tokens.digest(token)}"\nrole = "viewer"\n'
    )
    access.chmod(0o600)
    (tmp_path / "token").write_text(f"{token}\n")
    door = GuardedDoor(access, None, SystemClock())  # pyright: ignore[reportArgumentType]
    async with http.serving(panels.small(), Address("127.0.0.1", 0), door=door) as server:
        yield server.url, tmp_path / "token"


async def test_a_token_is_sent(served: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """From a file or the environment; without one the program ends with "not allowed"."""
    url, file = served
    with_file = client.of(Frame(server=url, token_file=file))
    assert (await asyncio.to_thread(with_file.get, "/whoami"))["name"] == "token:a"
    with pytest.raises(Stop) as refused:
        await asyncio.to_thread(client.of(Frame(server=url)).get, "/whoami")
    assert refused.value.code is Exit.FORBIDDEN
    monkeypatch.setenv("FLEETCTL_TOKEN", file.read_text())
    told = await asyncio.to_thread(client.of(Frame(server=url)).get, "/whoami")
    assert told["role"] == "viewer"


@pytest.mark.parametrize("server", ["http://fleetd.example", "http://192.0.2.1:8440"])
def test_a_token_is_not_sent_in_the_clear(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only over https, or to this machine."""
    monkeypatch.setenv("FLEETCTL_TOKEN", tokens.new())
    with pytest.raises(Stop, match="https only"):
        client.of(Frame(server=server))


def test_a_token_that_cannot_be_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A token with a line break, or a file that is not there, is said before anybody is asked."""
    monkeypatch.setenv("FLEETCTL_TOKEN", "a\nb")
    with pytest.raises(Stop, match="characters"):
        client.of(Frame())
    with pytest.raises(Stop, match="--token-file"):
        client.of(Frame(token_file=tmp_path / "none"))
    with pytest.raises(Stop, match="--ca-file"):
        client.of(Frame(ca_file=tmp_path / "none"))
