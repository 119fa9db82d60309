"""
The versions of other people's APIs that fleetd speaks: what its drivers write and read was checked
against the definitions of these, and of no others.

A server chooses among versions by itself, and prunes what the version that it takes does not have.
So one that serves a kind in other versions only is not written to: fields would be lost without a
word. What is not named here (the kinds of a catalogue of your own) is taken as it is served.
"""

from collections.abc import Mapping

SPOKEN: Mapping[str, tuple[str, ...]] = {
    "apiextensions.k8s.io": ("v1",),
    "apps": ("v1",),
    "c5c3.io": ("v1alpha1",),
    "cache.cs.sap.com": ("v1alpha1",),
    "ceph.cobaltcore.sap.com": ("v1alpha1",),
    "ceph.rook.io": ("v1",),
    "cloudprofilesync.cobaltcore.dev": ("v1alpha1",),
    "core.gardener.cloud": ("v1beta1",),
    "external-secrets.io": ("v1",),
    "external-secrets.io/PushSecret": ("v1alpha1",),
    "fluxcd.controlplane.io": ("v1",),
    "garage.rajsingh.info": ("v1beta1",),
    "garage.rajsingh.info/GarageCluster": ("v1beta2", "v1beta1"),
    "greenhouse.sap": ("v1alpha1",),
    "helm.toolkit.fluxcd.io": ("v2",),
    "k8s.mariadb.com": ("v1alpha1",),
    "kustomize.toolkit.fluxcd.io": ("v1",),
    "kvm.cloud.sap": ("v1",),
    "memcached.c5c3.io": ("v1beta1", "v1alpha1"),
    "metal.ironcore.dev": ("v1alpha1",),
    "openbao.org": ("v1alpha1",),
    "openstack.k-orc.cloud": ("v1alpha1",),
    "ovn.openstack.org": ("v1beta1",),
    "rabbitmq.com": ("v1beta1",),
    "rbac.authorization.k8s.io": ("v1",),
    "security.gardener.cloud": ("v1alpha1",),
    "source.toolkit.fluxcd.io": ("v1",),
    **{
        f"{service}.openstack.c5c3.io": ("v1alpha1",)
        for service in (
            *("barbican", "cinder", "glance", "horizon", "keystone", "neutron", "nova"),
            "placement",
        )
    },
}
"""By group, or by group and kind where one kind differs; the best first."""


def spoken(group: str, kind: str) -> tuple[str, ...]:
    """Empty: whatever is served."""
    return SPOKEN.get(f"{group}/{kind}") or SPOKEN.get(group, ())
