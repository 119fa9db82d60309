"""
Every exception fleetd raises on purpose.

    FleetError
      StoreError                the state directory cannot be trusted or written
        StoreBroken             a write or fsync failed: nothing may act outward any more
        StoreCorrupt            a record does not match its checksum
        StoreLocked             another fleetd holds the state directory
      SettingsError             a flag, variable or file of settings is wrong
      PlanRefused               a plan did not pass the lint

Bad documents are not exceptions: they are `topology.problem.Problem`s. A far side that fails is
not an exception either: it is an Outcome.
"""

from topology import blind


class FleetError(Exception):
    """Something a person can act on; its text says what to do."""

    blind = blind.NOT_OBSERVED
    """The reason of a look that ended with it, of `blind.REASONS`."""
    silent = ""
    """Backend of the far side that did not answer, where it is known which one it was."""


class StoreError(FleetError):
    pass


class StoreBroken(StoreError):
    pass


class StoreCorrupt(StoreError):
    pass


class StoreLocked(StoreError):
    pass


class SettingsError(FleetError):
    pass


class PlanRefused(FleetError):
    pass
