"""Applies manifests to a cluster, and judges what comes of them by the catalogue."""

from drivers.kubernetes.driver import KubernetesDriver

DRIVER = KubernetesDriver
