"""One good request for each route of the table, for those who ask them all."""

from typing import Any

BODIES: dict[str, Any] = {
    "pause": {"scope": "cluster/hv", "reason": "moving"},
    "resume": {"scope": "region:eu-1"},
    "decide": {"decision": "approve"},
    "retire": {"kind": "cluster", "name": "old"},
    "makePlan": {"documents": [{"file": "a.yaml", "folder": "/x", "text": "kind: Cluster"}]},
    "applyPlan": {},
    "putDocument": {"kind": "Cluster", "metadata": {"name": "hv"}, "spec": {}},
}
PLACES = {
    "getRegion": "/api/v1/regions/eu-1",
    "getResource": "/api/v1/resources/cluster/hv",
    "getTopology": "/api/v1/topology/eu-1",
    "getPicture": "/api/v1/picture/eu-1",
    "search": "/api/v1/search?q=hv",
    "getDocument": "/api/v1/documents/cluster/hv",
    "decide": "/api/v1/approvals/s1",
    "applyPlan": "/api/v1/plans/d1/apply",
    "putDocument": "/api/v1/documents/cluster/hv",
    "deleteDocument": "/api/v1/documents/cluster/hv",
}
PATHS = {**PLACES, "asset": "/assets/none.js", "assetInFolder": "/assets/none/none.js"}
