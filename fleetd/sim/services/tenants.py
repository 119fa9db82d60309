"""
People who use a cloud: a few virtual machines on every host that is opened for them.

They come some minutes after a host has left its tests, and stay; whoever takes their host empties
it first. A cloud that is to go must be left by its tenants (`leave`), as in reality: nobody else
ends their machines.
"""

from fleetd.sim.services.openstack_compute import Nova

MACHINES = 2
"""On each host."""
ARRIVAL = (60.0, 300.0)
"""Seconds after a host was opened."""
PROJECT = "tenants"


class Tenants:
    def __init__(self, nova: Nova) -> None:
        self._nova = nova
        self._world = nova.world
        self._known: set[str] = set()
        self._here = True
        nova.opened = self._welcome

    def leave(self) -> None:
        """All of them, for good."""
        self._here = False
        for vm in list(self._nova.vms.values()):
            if vm.project == PROJECT:
                self._nova.remove(vm)

    def _welcome(self, host: str) -> None:
        if host in self._known:
            return
        self._known.add(host)
        for number in range(1, MACHINES + 1):
            name = f"{host}-{number}"
            seconds = self._world.span(*ARRIVAL, "tenant", self._nova.cloud, name)
            self._world.after(seconds, lambda name=name: self._boot(name, host))

    def _boot(self, name: str, host: str) -> None:
        there = self._nova.hosts.get(host)
        if self._here and there is not None and not there.disabled and not there.forced_down:
            self._nova.boot(name, host, project=PROJECT)
