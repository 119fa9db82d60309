"""`fleetd`, and `python -m fleetd`."""

import signal


def main() -> None:
    # Unanswered, SIGHUP ends a process. Whoever asks for a reload while the daemon still starts
    # gets what was asked for: the documents are read when it is up.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    from fleetd.cli import daemon  # noqa: PLC0415 -- takes long enough for a signal to come

    daemon.main()


if __name__ == "__main__":
    main()
