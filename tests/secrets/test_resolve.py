"""Reading a secret by file or variable: what works, and complaints that tell nothing."""

import os
from pathlib import Path

import pytest

from fleetd import secrets
from tests.secrets import canary
from topology.documents.base import Access

VALUE = canary.CANARIES["password"]


def test_a_file_beside_the_document(tmp_path: Path) -> None:
    """A relative file is looked for in the folder, and one line end at its end is not part."""
    (tmp_path / "token").write_text(f"{VALUE}\n")
    assert secrets.resolve(Access(file="token"), tmp_path, {}).reveal() == VALUE


def test_only_the_last_line_end_goes(tmp_path: Path) -> None:
    """Spaces and inner line ends belong to the value."""
    (tmp_path / "token").write_bytes(b" one\r\ntwo \r\n")
    assert secrets.resolve(Access(file="token"), tmp_path, {}).reveal() == " one\r\ntwo "


def test_a_variable() -> None:
    """A variable gives its value as it is."""
    assert secrets.resolve(Access(env="TOKEN"), Path(), {"TOKEN": VALUE}).reveal() == VALUE


@pytest.mark.parametrize("environ", [{}, {"TOKEN": ""}])
def test_a_variable_that_is_not_there(environ: dict[str, str]) -> None:
    """A missing or empty variable is named."""
    with pytest.raises(secrets.SecretError, match="TOKEN"):
        secrets.resolve(Access(env="TOKEN"), Path(), environ)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (VALUE.encode() + b"\xff\xfe", "is not text in UTF-8"),
        (VALUE.encode() * 100_000, "has more than 1048576 bytes"),
    ],
)
def test_bad_files(tmp_path: Path, content: bytes, complaint: str) -> None:
    """The complaint names the file and the fault, and holds none of the content, anywhere."""
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(secrets.SecretError, match=complaint) as refused:
        secrets.resolve(Access(file="token"), tmp_path, {})
    error: BaseException | None = refused.value
    while error is not None:
        assert canary.found(repr(error) + str(error) + repr(vars(error))) == []
        error = error.__cause__ or error.__context__


def test_a_missing_file(tmp_path: Path) -> None:
    """A missing file is named."""
    with pytest.raises(secrets.SecretError, match="token does not exist"):
        secrets.resolve(Access(file="token"), tmp_path, {})


def test_a_directory(tmp_path: Path) -> None:
    """A directory is not read."""
    with pytest.raises(secrets.SecretError, match="is a directory"):
        secrets.resolve(Access(file="."), tmp_path, {})


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    """A named pipe that nobody writes to is refused at once."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(secrets.SecretError, match="not a regular file"):
        secrets.resolve(Access(file="pipe"), tmp_path, {})


def test_other_accesses_say_so() -> None:
    """What cannot be read here is refused, not guessed."""
    access = Access.model_validate({"openbao": {"path": "bmc/compute"}})
    with pytest.raises(secrets.SecretError, match="file or env"):
        secrets.resolve(access, Path(), {})
