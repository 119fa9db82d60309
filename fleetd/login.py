"""
How the API servers of a region are entered: with the kubeconfigs that the Region's document names.

They are read when somebody first looks, kept in memory by `Clusters`, and read again when looking
failed: a person who put a new file there need not restart anything.
"""

from datetime import datetime, timedelta

from fleetd import secrets
from fleetd.kube import errors, lifetime
from fleetd.tools import Tools
from topology.resource import Backend, Ref, Resource

AGAIN = timedelta(minutes=1)
"""Between two readings of one kubeconfig after failures; a hundred clusters fail together."""


class Login:
    """For backends `garden:<region>` and `metal:<region>`."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._read_at: dict[str, datetime] = {}

    async def enter(self, backend: str) -> None:
        """Raises SecretError or KubeError if there is no way in."""
        if not self._tools.clusters.has(backend):
            await self._read(backend)

    async def try_again(self, backend: str) -> None:
        """After a look that failed: the kubeconfig may have been replaced. Says nothing; the next
        look tells."""
        now = self._tools.clock.now()
        if now - self._read_at.get(backend, now - AGAIN) < AGAIN:
            return
        try:
            await self._read(backend)
        except (errors.KubeError, secrets.SecretError):
            return

    async def _read(self, backend: str) -> None:
        self._read_at[backend] = self._tools.clock.now()
        part, name = Backend.of(backend)
        region = self.document(name)
        kubeconfig = await self._tools.secrets.read(region.spec[part]["access"], region)
        self._tools.clusters.put(backend, kubeconfig, expires=lifetime.ends(kubeconfig))

    def document(self, region: str) -> Resource:
        found = self._tools.fleet.everything().resources.get(Ref("region", region))
        if found is None:
            raise secrets.SecretError(f"no document describes region {region}; add it")
        return found
