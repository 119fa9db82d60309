"""Settings: four sources in order of strength, exact complaints, and `fleetd config`."""

from datetime import timedelta
from pathlib import Path

import pytest

from fleetd import errors, settings
from fleetd.cli import daemon, schema, sources, values
from tests.cli import programs


def complaints(
    *, flags: dict[str, object] | None = None, env: dict[str, str] | None = None, toml: Path | None
) -> list[str]:
    with pytest.raises(errors.SettingsError) as refused:
        sources.load(flags or {}, env or {}, toml)
    return str(refused.value).splitlines()


def test_the_defaults_hold() -> None:
    """Nothing given, the defaults come out, and every one says so."""
    loaded = sources.load({}, {}, None)
    assert loaded.settings == settings.Settings()
    assert set(loaded.sources.values()) == {"default"}


def test_order_of_strength(tmp_path: Path) -> None:
    """A flag beats a variable, a variable beats the file, the file beats the default."""
    file = tmp_path / "fleetd.toml"
    file.write_text('grace = "1s"\n[observe]\ninterval = "1s"\ndeadline = "1s"\n', "utf-8")
    loaded = sources.load(
        {"grace": "3s"}, {"FLEETD_GRACE": "2s", "FLEETD_OBSERVE_INTERVAL": "2s"}, file
    )
    found = loaded.settings
    assert (found.grace, found.observe.interval, found.observe.deadline, found.execute.drain) == (
        timedelta(seconds=3),
        timedelta(seconds=2),
        timedelta(seconds=1),
        timedelta(seconds=10),
    )
    assert loaded.sources["grace"] == "flag --grace"
    assert loaded.sources["observe.interval"] == "FLEETD_OBSERVE_INTERVAL"
    assert loaded.sources["observe.deadline"] == f"{file}:4"
    assert loaded.sources["execute.drain"] == "default"


def test_paths_of_a_file_are_relative_to_it(tmp_path: Path) -> None:
    """A relative path means the same wherever the daemon is started."""
    file = tmp_path / "fleetd.toml"
    file.write_text('documents = ["fleet", "/abs"]\n[metrics]\ntoken = {file = "token"}\n', "utf-8")
    found = sources.load({}, {}, file).settings
    assert found.documents == (tmp_path / "fleet", Path("/abs"))
    assert found.metrics.token is not None
    assert found.metrics.token.file == str(tmp_path / "token")


def test_lists_from_everywhere() -> None:
    """A list is several flags, or commas in a variable."""
    env = {"FLEETD_DOCUMENTS": "a, b", "FLEETD_DRIVERS": "drivers.gardener"}
    found = sources.load({"catalogue": ("x", "y")}, env, None).settings
    assert found.documents == (Path("a"), Path("b"))
    assert found.catalogue == (Path("x"), Path("y"))
    assert found.drivers == ("drivers.gardener",)


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    """Unknown keys with a guess, wrong types, wrong ranges: all of them, each with its place."""
    file = tmp_path / "fleetd.toml"
    file.write_text(
        "# settings\n"
        'grase = "1s"\n'
        "observe = 3\n"
        "[execute]\n"
        "concurrency = true\n"
        "rate = 0\n"
        "interval = 5\n"
        "[lgo]\n"
        "x = 1\n",
        "utf-8",
    )
    assert complaints(env={"FLEETD_LISTN": "x", "FLEETD_GRACE": "30"}, toml=file) == [
        f"{file}:2: grase: there is no such setting; did you mean grace?",
        f"{file}:3: observe: is a table; write [observe] and keys below",
        f"{file}:5: execute.concurrency: True is not a whole number",
        f"{file}:6: execute.rate: 0.0 is out of range; choose 0.01 to 10000",
        f"{file}:7: execute.interval: there is no such setting; did you mean observe.interval?",
        f"{file}:8: lgo: there is no such setting; did you mean log?",
        'FLEETD_GRACE: grace: 30 has no unit; write "30s" for seconds',
        "FLEETD_LISTN: there is no such setting; did you mean FLEETD_LISTEN?",
    ]


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("listen", "8440", "is not HOST:PORT"),
        ("listen", "127.0.0.1:99999", "is not HOST:PORT"),
        ("listen", "0.0.0.0:8440", "access.file"),
        ("store", "kubernetes", "not yet in this version"),
        ("store", "etcd", "is not one of sqlite, memory"),
        ("log.level", "loud", "is not one of debug, info, error"),
        ("observe.interval", "5 minutes", "is not a duration"),
        ("observe.interval", "10ms", "out of range; choose 1s to 1d"),
        ("observe.workers", "many", "is not a whole number"),
        ("observe.workers", "0", "out of range; choose 1 to 4096"),
        ("execute.rate", "nan", "is not a number"),
        ("drivers", "not-a-module", "is not a Python module"),
        ("observe.stale_after", "10s", "is not longer than observe.interval"),
        ("breaker.cooldown_max", "1s", "shorter than breaker.cooldown"),
        ("backoff.base", "1h", "is shorter than backoff.base"),
    ],
)
def test_wrong_values(field: str, text: str, said: str) -> None:
    """Each wrong value is answered with what would be right."""
    (complaint,) = complaints(flags={field: text}, toml=None)
    assert said in complaint


@pytest.mark.parametrize("given", ["canary-s3cret-t0ken", "file", "secret:x", "openbao:x"])
def test_a_secret_in_the_wrong_place_is_not_repeated(given: str) -> None:
    """Whoever types the token itself does not find it in the complaint."""
    (complaint,) = complaints(env={"FLEETD_METRICS_TOKEN": given}, toml=None)
    assert "canary" not in complaint
    assert "it is not the secret" in complaint


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("FLEETD_SERVICE_HOST", "192.0.2.7"),
        ("FLEETD_SERVICE_PORT", "8440"),
        ("FLEETD_SERVICE_PORT_HTTP", "8440"),
        ("FLEETD_PORT", "tcp://192.0.2.7:8440"),
        ("FLEETD_PORT_8440_TCP", "tcp://192.0.2.7:8440"),
        ("FLEETD_PORT_8440_TCP_ADDR", "192.0.2.7"),
        ("FLEETD_PORT_8440_TCP_PROTO", "tcp"),
        ("FLEETD_METRICS_SERVICE_HOST", "192.0.2.8"),
        ("FLEETD_METRICS_PORT", "tcp://192.0.2.8:8440"),
        ("FLEETD_PARTS", "x"),
        ("FLEETD_REQUIRE_REAL", "1"),
        ("FLEETD_CONFIG", "x"),
        ("OTHER", "x"),
    ],
)
def test_variables_of_others(variable: str, value: str) -> None:
    """What Kubernetes or the workshop sets under our prefix is not a misspelt setting."""
    assert sources.load({}, {variable: value}, None).settings == settings.Settings()


@pytest.mark.parametrize("variable", ["FLEETD_PORT", "FLEETD_LISTEN_PORT", "FLEETD_SERVICE_PORT_X"])
def test_a_misspelt_variable_that_looks_injected(variable: str) -> None:
    """A port in our own words is a mistake, and is named."""
    value = "x" if variable.startswith("FLEETD_SERVICE") else "9000"
    (complaint,) = complaints(env={variable: value}, toml=None)
    assert complaint.startswith(f"{variable}: there is no such setting; ")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\xff\xfe", "is not text in UTF-8"),
        (b"a = [", "is not TOML: "),
    ],
)
def test_unreadable_files(tmp_path: Path, content: bytes | None, said: str) -> None:
    """A file that cannot be read is said in words."""
    file = tmp_path / "fleetd.toml"
    if content is not None:
        file.write_bytes(content)
    (complaint,) = complaints(toml=file)
    assert complaint.startswith(f"{file}: {said}")


@pytest.mark.parametrize("field", schema.FIELDS.values(), ids=lambda field: field.name)
def test_every_field_is_explained_and_round_trips(field: schema.Field) -> None:
    """Each setting has a text, a default within its bounds, and a spelling that reads back."""
    assert field.text.endswith(".")
    assert len(field.text.split()) >= 8
    shown = values.show(field.default)
    if shown and field.default != ():
        assert values.parse(field, shown, Path()) == field.default


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.1", False),
        ("localhost.example", False),
    ],
)
def test_loopback(host: str, loopback: bool) -> None:  # noqa: FBT001 -- a table
    """Only what cannot be reached from elsewhere counts as loopback."""
    assert settings.Address(host, 1).loopback is loopback


def test_config_shows_sources() -> None:
    """`fleetd config` prints every setting with its value and where it is from."""
    ran = programs.fleetd("config", "--listen", "[::1]:9", env={"FLEETD_GRACE": "5s"})
    assert (ran.code, ran.err) == (0, "")
    rows = {line.split()[0]: line.split(None, 2)[1:] for line in ran.out.splitlines()}
    assert set(rows) == set(schema.FIELDS)
    assert rows["listen"] == ["[::1]:9", "flag --listen"]
    assert rows["grace"] == ["5s", "FLEETD_GRACE"]
    assert rows["store"] == ["sqlite", "default"]


def test_config_as_json() -> None:
    """`-o json` is one document with value and source for each setting."""
    found = programs.fleetd("config", "-o", "json", "--documents", "a", "b").json["settings"]
    assert found["documents"] == {"value": ["a", "b"], "source": "flag --documents"}
    assert found["observe.workers"] == {"value": 256, "source": "default"}
    assert found["metrics.token"] == {"value": None, "source": "default"}


def test_config_as_toml_reads_back(tmp_path: Path) -> None:
    """`-o toml` given back with --config gives the same settings, from any folder."""
    args = ("--documents", "a b", "--observe-deadline", "500ms", "--metrics-token", "env:TOKEN")
    first = programs.fleetd("config", "-o", "toml", *args)
    file = tmp_path / "fleetd.toml"
    file.write_text(first.out, "utf-8")
    second = sources.load({}, {}, file).settings
    assert second.observe.deadline == timedelta(milliseconds=500)
    assert second.documents == (programs.ROOT / "a b",)
    assert second.metrics.token is not None
    assert second.metrics.token.env == "TOKEN"


def test_wrong_settings_are_wrong_usage() -> None:
    """`fleetd config` and `fleetd serve` end with 2 and the complaint on stderr."""
    for command in ("config", "serve"):
        ran = programs.fleetd(command, "--store", "kubernetes")
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == (
            "fleetd: flag --store: store: the kubernetes store is not yet in this version; "
            "use sqlite\n"
        )


def test_serve_needs_documents() -> None:
    """Without documents there is nothing to serve, and the complaint says how to give some."""
    ran = programs.fleetd("serve")
    assert (ran.code, ran.out) == (2, "")
    assert "--documents" in ran.err


def test_a_proxy_has_no_password_and_is_not_repeated() -> None:
    """It would be shown by `fleetd config`."""
    ran = programs.fleetd("config", "--network-proxy", "http://a:canary-Tr0ub4dor@p.example:3128")
    assert (ran.code, ran.out) == (2, "")
    assert "without a password" in ran.err
    assert "canary" not in ran.err
    ran = programs.fleetd("config", "--network-proxy", "http://p.example:3128")
    assert ran.code == 0


@pytest.mark.parametrize("command", ["serve", "config", "doctor"])
def test_every_setting_stands_in_the_help(command: str) -> None:
    """Under a title of its own group, with its whole first sentence and what it takes; no list of
    commands cuts one."""
    told = " ".join(programs.fleetd(command, "--help", env={"COLUMNS": "80"}).out.split())
    for field in schema.FIELDS.values():
        assert f" {field.flag} " in told, field.name
        assert " ".join(field.summary.split()) in told, field.name
        assert field.text, field.name
    for name in {one.rpartition(".")[0] for one in schema.FIELDS}:
        assert f" {daemon.GROUPS[name]}: --" in told
    for word in ("--access-file FILE ", "--pace-with FILE ", "--grace DURATION "):
        assert word in told
