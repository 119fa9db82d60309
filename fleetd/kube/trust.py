"""
Who Flux is on other clusters where they believe the tokens of the management cluster.

Names only: the driver of the clusters writes them into what their API servers believe and allow,
the driver of Flux into what Flux is told. A token is made for one cluster, its audience, so that
none is good at another.
"""

NAMESPACE, ACCOUNT = "flux-system", "flux-targets"
"""The ServiceAccount on the management cluster."""
PREFIX = "management:"
"""Before the names of its accounts on other clusters, where the same names are other accounts."""
USER = f"{PREFIX}system:serviceaccount:{NAMESPACE}:{ACCOUNT}"


def audience(cluster: str) -> str:
    return f"fleet.c5c3.io/{cluster}"
