"""
boot-operator: makes a ServerBootConfiguration bootable, over HTTP.

A moment after it appears it is Ready. An image that nobody
published ends in Error. It reports nothing else, and is read only for diagnosis.
"""

from fleetd.sim.controllers.base import Controller, Key
from fleetd.sim.controllers.metal_kinds import BOOT
from fleetd.sim.controllers.metal_parts import text_of

MISSING = ":missing"


class BootOperator(Controller):
    name = "boot-operator"
    watches = (BOOT,)

    def reconcile(self, key: Key) -> float | None:
        boot = self.get(key)
        if boot is None:
            return None
        state = text_of(boot, "status.state")
        if not state:
            self.status(key, {"state": "Pending"})
            return self.span(0.5, 3.0, key, "ready", boot["metadata"]["uid"])
        if state == "Pending":
            good = not str(boot["spec"].get("image", "")).endswith(MISSING)
            self.status(key, {"state": "Ready" if good else "Error"})
        return None
