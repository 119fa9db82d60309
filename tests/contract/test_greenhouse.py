"""What Greenhouse tells of a cluster is read where its schema says that it is."""

from typing import Any

from tests.contract import crds


def test_the_fields_that_are_read_exist() -> None:
    """The driver writes no object of Greenhouse's own, but it reads these."""
    body: dict[str, Any] = {
        "apiVersion": "greenhouse.sap/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "hv", "namespace": "greenhouse"},
        "spec": {"accessMode": "direct", "kubeConfig": {"maxTokenValidity": 72}},
        "status": {
            "bearerTokenExpirationTimestamp": "2026-03-06T21:00:00Z",
            "statusConditions": {
                "conditions": [
                    {
                        "type": "KubeConfigValid",
                        "status": "True",
                        "lastTransitionTime": "2026-03-03T21:00:00Z",
                    }
                ]
            },
        },
    }

    assert crds.problems(body, "greenhouse.sap", "Cluster") == []
    body["status"] = {"conditions": []}
    assert crds.problems(body, "greenhouse.sap", "Cluster") != []
