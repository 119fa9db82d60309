"""What the pages say exists, exists: commands, targets, files, links."""

import re
from pathlib import Path

from fleetd.cli import main as fleetctl
from tests.tidy import files

PAGES = [path for path in files.tracked(".md") if path.parts[0] != "tests"]
COMMAND = re.compile(
    r"^\s*(?:\$ )?((?:make|fleetctl|fleetd|\.ci/run|\.venv/bin/\w+)\b.*)$", re.MULTILINE
)
FENCE = re.compile(r"```(?:sh|console|bash)\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")


def _commands(page: Path) -> list[str]:
    return [
        command.strip()
        for block in FENCE.findall(files.text(page))
        for command in COMMAND.findall(block)
    ]


def test_the_readme_shows_the_two_commands_on_its_first_screen() -> None:
    """A newcomer sees `make demo` and `make test` without scrolling."""
    screen = "\n".join(files.text(Path("README.md")).splitlines()[:60])

    assert "make demo" in screen
    assert "make test" in screen


def test_every_make_target_named_on_a_page_exists() -> None:
    """`make x` on a page is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", files.text(Path("Makefile")), re.MULTILINE))
    named = {
        (str(page), word)
        for page in PAGES
        for word in re.findall(r"`make ([a-z-]+)", files.text(page))
        + [command.split()[1] for command in _commands(page) if command.startswith("make ")]
    }

    assert named
    assert sorted(pair for pair in named if pair[1] not in targets) == []


def test_every_fleetctl_command_on_a_page_exists() -> None:
    """Each `fleetctl x` in a shell block is a command of fleetctl."""
    known = set(fleetctl.fleetctl.commands)
    named = {
        (str(page), words[1])
        for page in PAGES
        for command in _commands(page)
        if (words := command.removeprefix(".venv/bin/").split())[0] == "fleetctl"
        and not words[1].startswith("-")
    }

    assert named
    assert sorted(pair for pair in named if pair[1] not in known) == []


def test_every_link_to_a_file_leads_somewhere() -> None:
    """Links between the project's files are not broken."""
    broken = [
        f"{page}: {target}"
        for page in PAGES
        for target in LINK.findall(files.text(page))
        if not (files.ROOT / page.parent / target).exists()
    ]

    assert broken == []


def test_every_module_of_the_daemon_stands_in_the_architecture() -> None:
    """Whoever looks for a file of the daemon or its engine finds its name and what it is for."""
    words = set(re.findall(r"[a-z_]+", files.text(Path("ARCHITECTURE.md"))))
    homes = (Path("fleetd"), Path("fleetd/daemon"), Path("fleetd/engine"))
    modules = [path for path in files.tracked(".py") if path.parent in homes]

    assert len(modules) > 20
    assert [
        str(one) for one in modules if one.stem.strip("_") not in {*words, "init", "main"}
    ] == []
