"""kubectl's own commands, which send protobuf: what arrives is what was asked for."""

from typing import Any, cast

import msgspec
import pytest

from tests.sim.kube.test_kubectl import Kubectl, kubectl

__all__ = ["kubectl"]

pytestmark = pytest.mark.real

IMAGE = "registry.example/app:1"
OWN: dict[str, tuple[tuple[str, ...], str, dict[str, object]]] = {
    "namespace": (("create", "namespace", "n"), "namespace/n", {"metadata.name": "n"}),
    "configmap": (
        ("create", "configmap", "c", "--from-literal=a=1", "--from-literal=b=größer"),
        "configmap/c",
        {"data.a": "1", "data.b": "größer"},
    ),
    "secret": (
        ("create", "secret", "generic", "s", "--from-literal=k=value"),
        "secret/s",
        {"data.k": "dmFsdWU=", "type": "Opaque"},
    ),
    "registry": (
        (
            *("create", "secret", "docker-registry", "d", "--docker-server=registry.example"),
            *("--docker-username=u", "--docker-password=p"),
        ),
        "secret/d",
        {"type": "kubernetes.io/dockerconfigjson"},
    ),
    "account": (("create", "serviceaccount", "a"), "serviceaccount/a", {"metadata.name": "a"}),
    "role": (
        ("create", "role", "r", "--verb=get,list", "--resource=pods", "--resource-name=p"),
        "role/r",
        {
            "rules": [
                {
                    "apiGroups": [""],
                    "resources": ["pods"],
                    "resourceNames": ["p"],
                    "verbs": ["get", "list"],
                }
            ]
        },
    ),
    "binding": (
        ("create", "clusterrolebinding", "b", "--clusterrole=view", "--serviceaccount=x:y"),
        "clusterrolebinding/b",
        {
            "roleRef.name": "view",
            "subjects": [{"kind": "ServiceAccount", "name": "y", "namespace": "x"}],
        },
    ),
    "deployment": (
        ("create", "deployment", "w", f"--image={IMAGE}", "--replicas=3", "--port=8080"),
        "deployment/w",
        {
            "spec.replicas": 3,
            "spec.selector.matchLabels": {"app": "w"},
            "spec.template.spec.containers.0.image": IMAGE,
            "spec.template.spec.containers.0.ports.0.containerPort": 8080,
        },
    ),
    "job": (
        ("create", "job", "j", f"--image={IMAGE}", "--", "date", "-u"),
        "job/j",
        {
            "spec.template.spec.containers.0.command": ["date", "-u"],
            "spec.template.spec.restartPolicy": "Never",
        },
    ),
    "pod": (
        ("run", "p", f"--image={IMAGE}", "--env=A=1", "--labels=x=y"),
        "pod/p",
        {
            "spec.containers.0.env": [{"name": "A", "value": "1"}],
            "metadata.labels": {"x": "y"},
        },
    ),
    "budget": (
        ("create", "pdb", "q", "--selector=app=w", "--min-available=50%"),
        "poddisruptionbudget/q",
        {"spec.minAvailable": "50%", "spec.selector.matchLabels": {"app": "w"}},
    ),
    "service": (
        ("create", "service", "clusterip", "v", "--tcp=80:8080"),
        "service/v",
        {"spec.ports.0.port": 80, "spec.ports.0.targetPort": 8080},
    ),
    "priority": (
        ("create", "priorityclass", "h", "--value=1000", "--description=high"),
        "priorityclass/h",
        {"value": 1000, "description": "high"},
    ),
}


def _at(found: object, path: str) -> object:
    for step in path.split("."):
        found = cast("Any", found)[int(step) if step.isdecimal() else step]
    return found


@pytest.mark.parametrize("which", list(OWN))
async def test_what_is_created(kubectl: Kubectl, which: str) -> None:
    """It is created, read back with all that was said, and a dry run of it leaves nothing."""
    command, name, wanted = OWN[which]
    await kubectl(*command[:2], "--dry-run=server", *command[2:])
    await kubectl("get", name, fails=True)
    await kubectl(*command)
    found: object = msgspec.json.decode(await kubectl("get", name, "-o", "json"))
    assert {path: _at(found, path) for path in wanted} == wanted


async def test_what_is_changed(kubectl: Kubectl) -> None:
    """By patches of three kinds, by scaling, by replacing; and read back."""
    await kubectl("create", "deployment", "w", f"--image={IMAGE}", "--replicas=3")
    await kubectl("scale", "deployment/w", "--replicas=5", "--current-replicas=3")
    await kubectl("set", "image", "deployment/w", "app=registry.example/app:2")
    await kubectl("set", "env", "deployment/w", "LEVEL=debug")
    await kubectl("label", "deployment/w", "tier=front")
    await kubectl("annotate", "deployment/w", "note=said")
    await kubectl("annotate", "deployment/w", "note-")
    added = '[{"op": "add", "path": "/metadata/labels/more", "value": "yes"}]'
    await kubectl("patch", "deployment/w", "--type=json", "-p", added)
    await kubectl("patch", "deployment/w", "--type=merge", "-p", '{"spec": {"paused": true}}')
    refused = await kubectl("label", "deployment/w", "tier=back", fails=True)
    found: object = msgspec.json.decode(await kubectl("get", "deployment/w", "-o", "json"))

    assert _at(found, "spec.replicas") == 5
    assert _at(found, "spec.paused") is True
    assert _at(found, "spec.template.spec.containers.0.image") == "registry.example/app:2"
    assert _at(found, "spec.template.spec.containers.0.env") == [
        {"name": "LEVEL", "value": "debug"}
    ]
    assert _at(found, "metadata.labels") == {"app": "w", "tier": "front", "more": "yes"}
    assert "note" not in cast("dict[str, Any]", _at(found, "metadata")).get("annotations", {})
    assert "already has a value (front)" in refused


async def test_what_is_asked(kubectl: Kubectl) -> None:
    """Rights, tokens, kinds and differences, with the exit codes that scripts rely on."""
    await kubectl("create", "serviceaccount", "a")
    await kubectl("create", "configmap", "c", "--from-literal=a=1")
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "2"}}

    assert await kubectl("auth", "can-i", "create", "pods") == "yes\n"
    mine = ("--as", "system:serviceaccount:default:a")
    assert await kubectl("auth", "can-i", "create", "pods", *mine, fails=True) == "no\n"
    assert (await kubectl("create", "token", "a")).count(".") == 2
    assert "deployments" in await kubectl("api-resources", "--api-group=apps", "-o", "name")
    changes = await kubectl("diff", "-f", kubectl.file(other), fails=True)
    assert '-  a: "1"\n+  a: "2"\n' in changes
    assert "cannot create resource" in await kubectl("create", "ns", "x", *mine, fails=True)
    await kubectl("replace", "-f", kubectl.file(other))
    assert await kubectl("get", "cm", "c", "-o", "jsonpath={.data.a}") == "2"
    await kubectl("delete", "cm", "--all")
    assert await kubectl("get", "cm", "-o", "name") == ""
