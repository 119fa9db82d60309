"""The audit log: written before the deed, and no line can be changed, moved or lost unseen."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from click.testing import CliRunner

from fleetd import secrets
from fleetd.cli import main
from fleetd.cli.ending import Stop
from fleetd.clock import SystemClock
from fleetd.daemon import audit
from fleetd.daemon.audit import Bad, Log
from fleetd.settings import Address
from fleetd.surface import http
from fleetd.surface.answering import Said
from tests.surface import panels
from tests.surface.desks import FakeDesk

SAID = Said(who="ada", how="local", what="pause", path="/x", told={"scope": "all"}, request="r1")


async def written(folder: Path, deeds: int = 5) -> Log:
    log = Log(folder, SystemClock())
    for _ in range(deeds):
        await log.end(await log.begin(SAID), "done", "")
    return log


async def test_a_log_is_read_on(tmp_path: Path) -> None:
    """A chain goes on over a restart, and all of it can be verified."""
    await written(tmp_path)
    await written(tmp_path)
    head = audit.verify(tmp_path)
    assert head.number == 20
    assert audit.verify(tmp_path, expected=head.digest) == head
    with pytest.raises(Bad, match="no line has the digest"):
        audit.verify(tmp_path, expected="0" * 64)


async def test_full_files_are_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chain runs through all files; one that is missing is found."""
    monkeypatch.setattr(audit, "FULL", 1000)
    await written(tmp_path, 20)
    assert len(audit.files(tmp_path)) > 5
    assert audit.verify(tmp_path).number == 40
    assert audit.verify(audit.files(tmp_path)[2]).number > 0
    audit.files(tmp_path)[2].unlink()
    with pytest.raises(Bad, match="missing or moved"):
        audit.verify(tmp_path)


def changed(rows: list[bytes], how: str) -> list[bytes]:
    match how:
        case "a word":
            return [*rows[:4], rows[4].replace(b"ada", b"eve"), *rows[5:]]
        case "a word and its digest":
            content = json.loads(rows[4])
            before = audit.Head(content["n"] - 1, content["prev"])
            told = {key: one for key, one in content.items() if key not in {"n", "prev", "hash"}}
            return [*rows[:4], audit.line(before, {**told, "who": "eve"})[1], *rows[5:]]
        case "a blank":
            return [*rows[:4], rows[4].replace(b":", b": ", 1), *rows[5:]]
        case "order":
            return [*rows[:4], rows[5], rows[4], *rows[6:]]
        case "one line less":
            return [*rows[:4], *rows[5:]]
        case "without the first":
            return rows[1:]
        case "without the last":
            return rows[:-1]
        case "nothing":
            return []
        case "twice":
            return [*rows[:5], rows[4], *rows[5:]]
        case _:
            return [*rows, b"{}\n"]


@pytest.mark.parametrize(
    "how",
    [
        "a word",
        "a word and its digest",
        "a blank",
        "order",
        "one line less",
        "without the first",
        "without the last",
        "nothing",
        "twice",
        "a line more",
    ],
)
async def test_tampering_is_found(tmp_path: Path, how: str) -> None:
    """Edited, moved, removed, cut off or added lines: each is found, and then nothing is told."""
    await written(tmp_path)
    file = tmp_path / audit.NEWEST
    rows = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(changed(rows, how)))
    with pytest.raises(Bad):
        audit.verify(tmp_path)
    again = Log(tmp_path, SystemClock())
    assert again.broken
    with pytest.raises(Bad):
        await again.begin(SAID)


async def test_any_one_line_of_many(tmp_path: Path) -> None:
    """Whichever line is changed by one letter, it is that line that is named."""
    await written(tmp_path, 50)
    file = tmp_path / audit.NEWEST
    rows = file.read_bytes().splitlines(keepends=True)
    for number in range(len(rows)):
        bent = [*rows]
        bent[number] = bent[number].replace(b'"at":"2', b'"at":"3')
        file.write_bytes(b"".join(bent))
        with pytest.raises(Bad, match=f"{audit.NEWEST}:{number + 1}: was changed"):
            audit.verify(tmp_path)


async def test_a_head_that_is_gone(tmp_path: Path) -> None:
    """Without the number of lines nobody could tell that some are missing at the end."""
    await written(tmp_path)
    (tmp_path / audit.HEAD).unlink()
    with pytest.raises(Bad, match="is missing"):
        audit.verify(tmp_path)


async def test_power_that_fails_in_the_middle_of_a_line(tmp_path: Path) -> None:
    """Half a line was never told to anybody; it goes, and the chain goes on."""
    await written(tmp_path)
    with (tmp_path / audit.NEWEST).open("ab") as file:
        file.write(b'{"n":11,"prev"')
    log = await written(tmp_path)
    assert (log.broken, audit.verify(tmp_path).number) == ("", 20)


async def test_power_that_fails_before_the_head_is_written(tmp_path: Path) -> None:
    """Lines beyond the head are good lines."""
    await written(tmp_path, 4)
    old = (tmp_path / audit.HEAD).read_bytes()
    await written(tmp_path, 1)
    (tmp_path / audit.HEAD).write_bytes(old)
    assert audit.verify(tmp_path).number == 10


async def test_a_writer_that_is_cut_off_leaves_a_whole_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the server cuts off requests whose line is on its way to the disk; the line gets
    there, and the next one follows on it."""
    log, begun, go = await written(tmp_path), threading.Event(), threading.Event()
    put = audit._put  # pyright: ignore[reportPrivateUsage]

    def slow(path: Path, content: bytes, how: int) -> None:
        begun.set()
        assert go.wait(60)
        put(path, content, how)

    monkeypatch.setattr(audit, "_put", slow)
    async with asyncio.TaskGroup() as group:
        cut = group.create_task(log.begin(SAID), name="cut")
        assert await asyncio.to_thread(begun.wait, 10)
        cut.cancel()
        await asyncio.wait([cut])
        after = group.create_task(log.end(10, "done", ""), name="after")
        await asyncio.sleep(0)
        go.set()
    assert (cut.cancelled(), after.done(), log.broken) == (True, True, "")
    assert audit.verify(tmp_path).number == 12


class Watching(FakeDesk):
    """Sees what is on disk when it is told something."""

    folder: Path
    seen: bytes = b""

    async def pause(self, scope: str, *, who: str, why: str) -> Any:
        self.seen = (self.folder / audit.NEWEST).read_bytes()
        return await super().pause(scope, who=who, why=why)


@pytest_asyncio.fixture
async def tell(tmp_path: Path) -> AsyncGenerator[Any]:
    desk = Watching()
    desk.folder = tmp_path
    log = Log(tmp_path, SystemClock())
    async with (
        http.serving(panels.small(), Address("127.0.0.1", 0), desk=desk, audit=log) as server,
        aiohttp.ClientSession() as session,
    ):

        async def tell(path: str, body: Any, method: str = "POST") -> int:
            headers = {"X-Request-Id": "r-7"}
            url = f"{server.url}/api/v1/{path}"
            async with session.request(method, url, json=body, headers=headers) as answer:
                return answer.status

        tell.desk, tell.log = desk, log  # pyright: ignore[reportFunctionMemberAccess]
        yield tell


async def test_every_write_is_there_before_its_effect(tell: Any, tmp_path: Path) -> None:
    """Who, what, when, which request, then what came of it; refusals of the desk as well."""
    assert await tell("pause", {"who": "ada", "scope": "all", "reason": "x"}) == 200
    told = json.loads(tell.desk.seen)
    assert (told["who"], told["what"], told["request"]) == ("ada", "pause", "r-7")
    assert told["told"] == {"scope": "all", "reason": "x", "who": "ada"}
    assert await tell("resume", {"scope": "none"}) == 409
    assert await tell("plans/d1/apply", {}) == 200
    rows = [json.loads(one) for one in (tmp_path / audit.NEWEST).read_bytes().splitlines()]
    assert [one.get("result") for one in rows] == [None, "done", None, "refused", None, "done"]
    assert (rows[5]["of"], rows[5]["plan"]) == (rows[4]["n"], "d1")
    assert audit.verify(tmp_path).number == 6


async def test_what_is_badly_asked_leaves_no_line(tell: Any, tmp_path: Path) -> None:
    """A body that is not understood is no deed."""
    assert await tell("pause", {"scope": 1}) == 400
    assert audit.files(tmp_path) == []


async def test_what_cannot_be_audited_is_not_done(tell: Any) -> None:
    """A log that cannot be written stops writes and nothing else."""
    tell.log._broken = "the disk is full"
    assert await tell("pause", {"scope": "all", "reason": "x"}) == 507
    assert await tell("regions", None, "GET") == 200
    assert await tell("../../readyz", None, "GET") == 503
    assert tell.desk.pauses == {}


async def test_texts_and_secrets_are_not_copied(tell: Any, tmp_path: Path) -> None:
    """Of documents the digest is kept; a known secret is scrubbed."""
    secrets.Secret("canary-audit-1234567").reveal()
    sent = {"file": "a.yaml", "folder": "/x", "text": "kind: Cluster # body"}
    assert await tell("plans", {"documents": [sent]}) == 200
    assert await tell("pause", {"scope": "all", "reason": "canary-audit-1234567"}) == 200
    text = (tmp_path / audit.NEWEST).read_text()
    assert "a.yaml" in text
    assert "# body" not in text
    assert "canary" not in text


async def test_the_command(tmp_path: Path) -> None:
    """`fleetctl audit` lists, `fleetctl audit verify` says whether the chain holds."""
    await written(tmp_path)
    listed = CliRunner().invoke(main.fleetctl, ["audit", "list", str(tmp_path)])
    assert listed.output.count("pause") == 5
    good = CliRunner().invoke(main.fleetctl, ["audit", "verify", str(tmp_path)])
    assert (good.exit_code, "10 lines" in good.output) == (0, True)
    told = CliRunner().invoke(main.fleetctl, ["audit", "verify", str(tmp_path), "-o", "json"])
    digest = (tmp_path / audit.HEAD).read_text().split()[1]
    assert json.loads(told.output) == {"good": True, "lines": 10, "digest": digest}
    rows = (tmp_path / audit.NEWEST).read_bytes().splitlines(keepends=True)
    (tmp_path / audit.NEWEST).write_bytes(b"".join(rows[:-1]))
    bad = CliRunner().invoke(main.fleetctl, ["audit", "verify", str(tmp_path)])
    assert isinstance(bad.exception, Stop | Bad)
