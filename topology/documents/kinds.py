"""The kinds of documents a user may write, and the model of each."""

from collections.abc import Mapping

from topology.documents.base import Document
from topology.documents.cloud import Cloud
from topology.documents.cluster import Cluster
from topology.documents.flow import CredentialFlow
from topology.documents.maintenance import Maintenance
from topology.documents.pool import ServerPool
from topology.documents.region import Region
from topology.documents.rollout import Rollout

KINDS: Mapping[str, type[Document]] = {
    "Region": Region,
    "Cluster": Cluster,
    "ServerPool": ServerPool,
    "Cloud": Cloud,
    "CredentialFlow": CredentialFlow,
    "Rollout": Rollout,
    "Maintenance": Maintenance,
}
