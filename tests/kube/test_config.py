"""Which kubeconfigs are accepted, and what is never given away about them."""

import asyncio
import traceback
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleetd.kube import config
from fleetd.secrets import Secret
from tests.kube import wire

SERVER = "https://api.example:6443"
CANARY = "canary-0123456789-canary"


@pytest.mark.parametrize(
    ("server", "accepted"),
    [
        ("https://api.example", True),
        ("https://api.example:6443/k8s/hv/", True),
        ("http://127.0.0.1:8001", True),
        ("http://localhost:8001/k8s", True),
        ("http://[::1]:8001", True),
        ("http://api.example", False),
        ("http://127.0.0.1.example", False),
        ("http://10.0.0.1", False),
        ("ftp://api.example", False),
        ("unix:///run/x.sock", False),
        ("https://user:password@api.example", False),
        ("https://api.example?x=y", False),
        ("https://api.example:notaport", False),
        ("https://[", False),
        ("", False),
    ],
)
def test_addresses(server: str, accepted: bool) -> None:  # noqa: FBT001 -- a table
    """TLS everywhere but on loopback, and nothing hidden in the address."""
    if accepted:
        assert config.read(wire.kubeconfig(server)).server == server.rstrip("/")
    else:
        with pytest.raises(config.BadConfig):
            config.read(wire.kubeconfig(server))


@pytest.mark.parametrize(
    ("cluster", "user", "said"),
    [
        ({}, {"exec": {"command": "sh", "args": ["-c", CANARY]}}, "exec or auth-provider"),
        ({}, {"auth-provider": {"name": "oidc"}}, "exec or auth-provider"),
        ({}, {"tokenFile": "/etc/passwd"}, r"names a file \(tokenFile\)"),
        ({}, {"client-key": "k", "client-certificate-data": ""}, r"\(client-key\)"),
        ({"certificate-authority": "ca.pem"}, {}, r"\(certificate-authority\)"),
        ({"insecure-skip-tls-verify": True}, {}, "certificates are always checked"),
        ({"proxy-url": "socks5://127.0.0.1:1"}, {}, "proxy-url"),
        ({"proxy-url": f"http://u:{CANARY}@h:1"}, {}, "proxy-url"),
        ({}, {"token": CANARY, "as": "admin"}, r"impersonates somebody \(as\)"),
    ],
)
def test_what_is_not_accepted_is_said(
    cluster: dict[str, Any], user: dict[str, Any], said: str
) -> None:
    """No programs, no files, no unchecked certificates, and nothing that would be ignored."""
    with pytest.raises(config.BadConfig, match=said) as caught:
        config.read(wire.kubeconfig(SERVER, cluster, user))

    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"token: {CANARY}\n  - [",
        f"- {CANARY}",
        f'"{CANARY}"',
        "",
        f"current-context: {CANARY}",
        f"{{current-context: a, contexts: {CANARY}}}",
        "{current-context: a, contexts: [{name: a, context: {cluster: b}}], clusters: []}",
        "{current-context: a, contexts: [{name: a}], clusters: [{name: b}]}",
        wire.kubeconfig(SERVER, {}, {"token": CANARY}).reveal().replace("token:", "- token:"),
        wire.kubeconfig(SERVER, {}, {}).reveal().replace("user: {}", f"user: {CANARY}"),
    ],
)
def test_what_is_no_kubeconfig_is_refused_without_being_quoted(text: str) -> None:
    """Neither the message nor the traceback shows a word of it."""
    with pytest.raises(config.BadConfig) as caught:
        config.read(Secret(text))

    told = "".join(traceback.format_exception(caught.value))
    assert CANARY not in told.replace(str(Path(__file__)), "")
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("cluster", "user", "said"),
    [
        ({"certificate-authority-data": "!!"}, {}, "certificate-authority-data .* is not base64"),
        ({"certificate-authority-data": wire.b64(b"no pem")}, {}, "authority-data .* cannot be"),
        ({}, {"client-key-data": wire.b64(b"k")}, "but not both"),
        (
            {},
            {"client-key-data": wire.b64(b"k"), "client-certificate-data": wire.b64(b"c")},
            "client certificate and key of the kubeconfig cannot be used",
        ),
    ],
)
async def test_keys_that_are_none_are_named(
    cluster: dict[str, Any], user: dict[str, Any], said: str
) -> None:
    """Which part cannot be used, in words."""
    read = config.read(wire.kubeconfig(SERVER, cluster, user))

    with pytest.raises(config.BadConfig, match=said):
        await config.load(read)


async def test_a_token_stays_in_its_wrapper() -> None:
    """What is loaded shows nothing when it is printed."""
    target = await config.load(config.read(wire.kubeconfig(SERVER)))

    assert target.authorization == Secret(f"Bearer {wire.TOKEN}")
    assert wire.TOKEN not in repr(target)


async def test_without_a_user_nobody_logs_in() -> None:
    """A kubeconfig without credentials is good for a server that asks for none."""
    document = yaml.safe_load(wire.kubeconfig("http://127.0.0.1:1").reveal())
    del document["users"], document["contexts"][0]["context"]["user"]

    target = await config.load(config.read(Secret(yaml.safe_dump(document))))

    assert target.authorization is None
    assert target.tls is None


def test_a_local_file_may_name_files(tmp_path: Path) -> None:
    """They are taken in, relative to its folder; what comes out stands alone."""
    (tmp_path / "token").write_text(f"{CANARY}\n")
    (tmp_path / "ca.pem").write_bytes(b"authority")
    named = wire.kubeconfig(
        SERVER, {"certificate-authority": "ca.pem"}, {"tokenFile": str(tmp_path / "token")}
    )

    flat = config.flatten(named, tmp_path)

    document = yaml.safe_load(flat.reveal())
    assert document["clusters"][0]["cluster"] == {
        "server": SERVER,
        "certificate-authority-data": wire.b64(b"authority"),
    }
    assert document["users"][0]["user"] == {"token": CANARY}
    assert config.read(flat).server == SERVER


def test_a_named_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    """With its path, which is no secret."""
    named = wire.kubeconfig(SERVER, {}, {"client-certificate": "gone.pem"})

    with pytest.raises(config.BadConfig, match=r"gone\.pem: No such file"):
        config.flatten(named, tmp_path)


async def test_a_program_logs_in_only_where_that_is_allowed(tmp_path: Path) -> None:
    """With the setting, its token is used; if it fails, its words are not repeated."""
    good = tmp_path / "good.sh"
    said = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential"'
    good.write_text(f"""#!/bin/sh\necho '{said},"status":{{"token":"from-program"}}}}'\n""")
    bad = tmp_path / "bad.sh"
    bad.write_text(f"#!/bin/sh\necho {CANARY} >&2; exit 1\n")

    def asking(program: Path) -> config.Kubeconfig:
        version = "client.authentication.k8s.io/v1"
        user = {"exec": {"apiVersion": version, "command": "sh", "args": [str(program)]}}
        return config.read(wire.kubeconfig(SERVER, {}, user), plugins=True)

    async with asyncio.timeout(10):
        target = await config.load(asking(good))
        with pytest.raises(config.BadConfig, match="could not log in") as caught:
            await config.load(asking(bad))

    assert target.authorization == Secret("Bearer from-program")
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "text",
    ["clusters: " + "[" * 200_000, '{"clusters":' + "[" * 200_000 + "]" * 200_000 + "}"],
    ids=["YAML", "JSON"],
)
def test_a_kubeconfig_that_is_nested_without_end_is_no_kubeconfig(
    text: str, tmp_path: Path
) -> None:
    """It may come from a far side; the process goes on."""
    with pytest.raises(config.BadConfig, match="not a document in YAML"):
        config.read(Secret(text))
    with pytest.raises(config.BadConfig, match="not a document in YAML"):
        config.flatten(Secret(text), tmp_path)
