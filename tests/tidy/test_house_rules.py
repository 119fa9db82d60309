"""The house rules, as tests: length, places where time and chance may be read, words."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy import files

PYTHON = files.tracked(".py")
SOURCES = [path for path in PYTHON if path.parts[0] in {"fleetd", "topology", "drivers"}]

# Spelt in halves, so that this file does not break its own rule.
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:work|root|farm|home/\w+)/")
REGISTRY_HOSTS = re.compile(
    r"py"
    r"pi\.org|python"
    r"hosted|proxy\.go"
    r"lang|registry\.np"
    r"mjs|repo1?\.maven|"
    r"deb\.deb"
    r"ian|static\.crates|index\.crates",
    re.IGNORECASE,
)
TIME_AND_CHANCE = {
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
    ("time", "time"),
    ("time", "monotonic"),
    ("time", "sleep"),
    ("uuid", "uuid4"),
    ("random", "random"),
    ("random", "choice"),
    ("os", "urandom"),
}
MAY_READ_THEM = {Path("fleetd/clock.py"), Path("fleetd/app.py")}
DRIVERS_MAY_IMPORT = {
    "fleetd.clouds",
    "fleetd.errors",
    "fleetd.gate",
    "fleetd.kube",
    "fleetd.login",
    "fleetd.desired",
    "fleetd.objects",
    "fleetd.plainyaml",
    "fleetd.redfish",
    "fleetd.secrets",
    "fleetd.tools",
    "fleetd.vocabulary",
}
"""The words, what they are given, and the clients. A list of what is allowed: what is new in fleetd
is not for drivers until somebody says so here."""


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(files.text(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_no_python_file_is_longer_than_500_lines() -> None:
    """A file holds one idea; past 500 lines it holds two."""
    long = {str(path): len(files.text(path).splitlines()) for path in PYTHON}

    assert {name: lines for name, lines in long.items() if lines > 500} == {}


def test_no_function_is_longer_than_70_lines() -> None:
    """A function fits on a screen."""
    long = {
        f"{path}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path in PYTHON
        for node in _functions(path)
    }

    assert {name: lines for name, lines in long.items() if lines > 70} == {}


@pytest.mark.parametrize("pattern", [MACHINE_PATHS, REGISTRY_HOSTS], ids=["path", "registry"])
def test_no_file_names_a_machine_or_a_registry(pattern: re.Pattern[str]) -> None:
    """The project runs anywhere; where packages come from is the user's setting."""
    found = [
        f"{path}:{number}"
        for path in files.tracked()
        for number, line in enumerate(files.text(path).splitlines(), 1)
        if pattern.search(line)
    ]

    assert found == []


def test_time_and_chance_come_in_as_arguments() -> None:
    """Only the clock and the composition root ask the system what time it is, or for luck."""
    found = [
        f"{path}:{node.lineno} {node.value.id}.{node.attr}"
        for path in SOURCES
        if path not in MAY_READ_THEM
        for node in ast.walk(ast.parse(files.text(path)))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in TIME_AND_CHANCE
    ]

    assert found == []


def _imported(path: Path) -> Iterator[str]:
    """Modules of fleetd that a file imports, by their first two names."""
    for node in ast.walk(ast.parse(files.text(path))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "fleetd":
                yield ".".join(name.split(".")[:2])


def test_drivers_import_only_what_is_meant_for_them() -> None:
    """A driver knows the words of fleetd, its tools and the clients, and nothing else of it."""
    drivers = [path for path in SOURCES if path.parts[0] == "drivers"]
    imported = {(str(path), name) for path in drivers for name in _imported(path)}

    assert imported
    assert sorted(pair for pair in imported if pair[1] not in DRIVERS_MAY_IMPORT) == []
    assert {name for _, name in imported} == DRIVERS_MAY_IMPORT


def test_tasks_are_created_in_a_group_and_named() -> None:
    """A task has an owner that sees it fail, and a name one can find in a dump."""
    found = [
        f"{path}:{node.lineno}"
        for path in SOURCES
        for node in ast.walk(ast.parse(files.text(path)))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"create_task", "ensure_future"}
        and (
            (isinstance(node.func.value, ast.Name) and node.func.value.id == "asyncio")
            or not any(keyword.arg == "name" for keyword in node.keywords)
        )
    ]

    assert found == []


def test_every_module_says_what_it_is() -> None:
    """The first thing in a module is a docstring."""
    silent = [
        str(path) for path in PYTHON if ast.get_docstring(ast.parse(files.text(path))) is None
    ]

    assert silent == []


def test_every_test_states_its_claim() -> None:
    """A test without a claim in words is a riddle when it fails."""
    silent = [
        f"{path}:{node.lineno} {node.name}"
        for path in PYTHON
        if path.parts[0] == "tests" and path.name.startswith("test_")
        for node in _functions(path)
        if node.name.startswith("test_") and ast.get_docstring(node) is None
    ]

    assert silent == []


def test_no_test_asserts_nothing() -> None:
    """A test that cannot fail is a lie: each has an assert, or expects a raise."""
    empty = [
        f"{path}:{node.lineno} {node.name}"
        for path in PYTHON
        if path.parts[0] == "tests" and path.name.startswith("test_")
        for node in _functions(path)
        if node.name.startswith("test_") and not _can_fail(node)
    ]

    assert empty == []


def _can_fail(function: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Assert | ast.Raise)
        or (
            isinstance(node, ast.Attribute | ast.Name)
            and (node.attr if isinstance(node, ast.Attribute) else node.id)
            in {"raises", "fail", "check", "expect"}
        )
        or (isinstance(node, ast.Name) and node.id.startswith(("assert_", "check_", "_assert")))
        for node in ast.walk(function)
    )


def test_the_spelling_of_a_backend_is_read_in_one_place() -> None:
    """`topology.resource.Backend.of` knows where the kind ends; nobody else takes it apart."""
    pattern = re.compile(r"backend\w*\.(partition|split|startswith|removeprefix)\(")
    found = [
        f"{path}:{number}"
        for path in SOURCES
        for number, line in enumerate(files.text(path).splitlines(), 1)
        if pattern.search(line)
    ]

    assert found == []


def test_nothing_switches_certificate_checks_off() -> None:
    """An unverified endpoint would be a setting with a name, never a line of code."""
    # Letters in brackets, so that this line does not break its own rule.
    pattern = re.compile(r"verify\s*=\s*[F]alse|CERT_[N]ONE|check_hostname\s*=\s*[F]alse")
    found = [
        f"{path}:{number}"
        for path in PYTHON
        for number, line in enumerate(files.text(path).splitlines(), 1)
        if pattern.search(line)
    ]

    assert found == []
