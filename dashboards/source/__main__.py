"""`python -m dashboards.source --write | --check`: the JSON that Grafana reads."""

import argparse
import json
import sys
from pathlib import Path

from dashboards.source import clusters, credentials, itself, metal, overview, region
from dashboards.source.model import Board

FOLDER = Path(__file__).parents[1] / "grafana"


def boards() -> list[Board]:
    return [one.made() for one in (overview, region, clusters, metal, credentials, itself)]


def files() -> dict[str, str]:
    """By name of the file: what is in it."""
    return {f"{one.uid}.json": json.dumps(one.json(), indent=2) + "\n" for one in boards()}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Makes or checks dashboards/grafana/.")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--write", action="store_true", help="write the dashboards")
    group.add_argument("--check", action="store_true", help="fail if they are not current")
    made = files()
    there = {path.name: path for path in FOLDER.glob("*.json")}
    if parser.parse_args(argv).write:
        for name in there.keys() - made.keys():
            there[name].unlink()
        for name, text in made.items():
            (FOLDER / name).write_text(text, "utf-8")
        return 0
    found = {name: path.read_text("utf-8") for name, path in there.items()}
    if found != made:
        sys.stderr.write("dashboards/grafana is not current: python -m dashboards.source --write\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
