"""`fleetd`, and `python -m fleetd`."""

from fleetd.cli import daemon


def main() -> None:
    daemon.main()


if __name__ == "__main__":
    main()
