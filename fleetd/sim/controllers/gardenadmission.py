"""
What a gardener-apiserver 1.138 serves, fills in and refuses, as it was seen on a real one.

Kinds of the groups core and security, the order in which things must exist (project, profile,
registered types, binding), defaults, deletion with confirmation, and the annotation
`gardener.cloud/operation`, part of which is consumed by the server itself. What a change of a
Shoot's spec is answered with is `gardenadmission_shoot`. Left out: quotas, tolerations, seed
assignment by users, SecretBindings, what only webhooks of extensions do.
"""

import json

from fleetd.sim.controllers import gardenadmission_operations as operations
from fleetd.sim.controllers import gardenadmission_shoot as shoots
from fleetd.sim.controllers.metal_parts import items_of, notes_of, part
from fleetd.sim.kube import refusal
from fleetd.sim.kube.access import User
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.kube.definitions import Column, Definition
from fleetd.sim.kube.refusal import Refused
from fleetd.sim.kube.values import GK, Obj, clone, name_of, namespace_of

CORE = "core.gardener.cloud"
SECURITY = "security.gardener.cloud"
SHOOT: GK = (CORE, "Shoot")
PROJECT: GK = (CORE, "Project")
PROFILE: GK = (CORE, "CloudProfile")
OWN_PROFILE: GK = (CORE, "NamespacedCloudProfile")
SEED: GK = (CORE, "Seed")
REGISTRATION: GK = (CORE, "ControllerRegistration")
EXPOSURE: GK = (CORE, "ExposureClass")
BINDING: GK = (SECURITY, "CredentialsBinding")
IDENTITY: GK = (SECURITY, "WorkloadIdentity")

SCHEDULER = "system:controller:gardener-scheduler"
CONFIRMATION = "confirmation.gardener.cloud/deletion"
OPERATION = "gardener.cloud/operation"
PROJECT_MAX = 10
TOGETHER_MAX = 21
_CONDITIONS = {"status.conditions": ("type",)}


def _spec_bumps(old: Obj, new: Obj) -> bool:
    """With `confineSpecUpdateRollout` a changed spec waits for the window: the generation stays,
    except for hibernation. Of the provider's parts the bytes are compared: another order of keys
    is another spec."""
    before, after = part(old, "spec"), part(new, "spec")
    if before == after and _raw(before) == _raw(after):
        return False
    confined = part(after, "maintenance").get("confineSpecUpdateRollout")
    return not confined or before.get("hibernation") != after.get("hibernation")


def _raw(spec: Obj) -> str:
    provider = part(spec, "provider")
    kept = ("infrastructureConfig", "controlPlaneConfig")
    return json.dumps([provider.get(name) for name in kept])


DEFINITIONS = (
    Definition(
        group=CORE,
        kind="Shoot",
        plural="shoots",
        versions=("v1beta1",),
        subresources=("adminkubeconfig", "viewerkubeconfig", "binding"),
        lists={
            **_CONDITIONS,
            "status.constraints": ("type",),
            "status.advertisedAddresses": ("name",),
            "spec.provider.workers": ("name",),
            "spec.extensions": ("type",),
            "spec.resources": ("name",),
        },
        bumps=_spec_bumps,
        selectable=("spec.seedName", "status.seedName", "spec.cloudProfileName"),
        columns=(
            Column("CloudProfile", "spec.cloudProfile.name"),
            Column("Provider", "spec.provider.type"),
            Column("Region", "spec.region"),
            Column("K8S Version", "spec.kubernetes.version"),
            Column("Last Operation", "status.lastOperation.state"),
        ),
    ),
    Definition(
        group=CORE,
        kind="Project",
        plural="projects",
        versions=("v1beta1",),
        namespaced=False,
        lists={"spec.members": ("name",)},
        columns=(Column("Namespace", "spec.namespace"), Column("Status", "status.phase")),
    ),
    Definition(
        group=CORE,
        kind="CloudProfile",
        plural="cloudprofiles",
        versions=("v1beta1",),
        namespaced=False,
        generation=True,
        lists={"spec.machineImages": ("name",), "spec.machineTypes": ("name",)},
    ),
    Definition(
        group=CORE,
        kind="NamespacedCloudProfile",
        plural="namespacedcloudprofiles",
        versions=("v1beta1",),
    ),
    Definition(
        group=CORE,
        kind="Seed",
        plural="seeds",
        versions=("v1beta1",),
        namespaced=False,
        lists=_CONDITIONS,
        columns=(Column("Status", "status.conditions[GardenletReady]"),),
    ),
    *(
        Definition(
            group=CORE, kind=kind, plural=plural, versions=("v1beta1",), namespaced=space, status=st
        )
        for kind, plural, space, st in (
            ("ControllerRegistration", "controllerregistrations", False, False),
            ("ControllerInstallation", "controllerinstallations", False, True),
            ("InternalSecret", "internalsecrets", True, False),
            ("SecretBinding", "secretbindings", True, False),
            ("Quota", "quotas", True, False),
            ("ExposureClass", "exposureclasses", False, False),
        )
    ),
    Definition(
        group=SECURITY,
        kind="CredentialsBinding",
        plural="credentialsbindings",
        versions=("v1alpha1",),
        status=False,
        immutable=("provider", "credentialsRef"),
        columns=(Column("Provider", "provider.type"),),
    ),
    Definition(
        group=SECURITY,
        kind="WorkloadIdentity",
        plural="workloadidentities",
        versions=("v1alpha1",),
        subresources=("token",),
    ),
)


class Admission:
    """The hooks of one garden."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def install(self) -> None:
        for definition in DEFINITIONS:
            self.cluster.serve(definition)
        self.cluster.admit(PROJECT, self.project)
        self.cluster.admit(PROFILE, self.profile)
        self.cluster.admit(BINDING, self.binding)
        self.cluster.admit(IDENTITY, self.identity)
        self.cluster.admit(SEED, self.seed)
        self.cluster.admit(SHOOT, self.shoot)

    def _definition(self, gk: GK) -> Definition:
        return self.cluster.table(gk).definition

    # Projects

    def project(self, what: str, new: Obj | None, old: Obj | None, user: User) -> Obj | None:
        definition = self._definition(PROJECT)
        if what == "DELETE" and old is not None:
            self._confirmed(definition, old)
            return None
        if new is None or what not in ("CREATE", "UPDATE"):
            return None
        name, spec = name_of(new), part(new, "spec")
        problems: list[tuple[str, str, str]] = []
        if len(name) > PROJECT_MAX:
            text = f"Too long: may not be more than {PROJECT_MAX} bytes"
            problems.append(("FieldValueTooLong", "metadata.name", text))
        if "--" in name:
            text = f'Invalid value: "{name}": name may not contain two consecutive hyphens'
            problems.append(("FieldValueInvalid", "metadata.name", text))
        space = spec.get("namespace", "")
        if space and not space.startswith("garden-") and space != "garden":
            text = f'Invalid value: "{space}": must start with garden-'
            problems.append(("FieldValueInvalid", "spec.namespace", text))
        before = part(old, "spec").get("namespace", "")
        if before and before != space:
            text = f'Invalid value: "{space}": field is immutable'
            problems.append(("FieldValueInvalid", "spec.namespace", text))
        if problems:
            raise refusal.invalid(definition, name, *problems)
        if what == "UPDATE":
            return None
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user.name}
        made = clone(new)
        given = made.setdefault("spec", {})
        given.setdefault("createdBy", subject)
        given.setdefault("owner", subject)
        given.setdefault("members", [{**subject, "role": "admin", "roles": ["owner"]}])
        return made

    def project_of(self, namespace: str) -> Obj | None:
        return next(
            (
                one
                for one in self.cluster.list(PROJECT)
                if part(one, "spec").get("namespace") == namespace
            ),
            None,
        )

    # Profiles, seeds, credentials

    def profile(self, what: str, new: Obj | None, old: Obj | None, user: User) -> Obj | None:
        del user
        if new is None or what not in ("CREATE", "UPDATE"):
            return None
        definition, name = self._definition(PROFILE), name_of(new)
        spec = part(new, "spec")
        versions: list[Obj] = items_of(spec, "kubernetes.versions")
        for path in ("machineImages", "machineTypes", "regions"):
            if not spec.get(path):
                text = f"Required value: must provide at least one of {path}"
                raise refusal.invalid(
                    definition, name, ("FieldValueRequired", f"spec.{path}", text)
                )
        newest = max(versions, key=lambda one: shoots.numbers(one["version"]), default=None)
        if newest is not None and newest.get("expirationDate"):
            text = (
                f"expiration date of latest kubernetes version ('{newest['version']}') "
                "must not be set"
            )
            problem = ("FieldValueInvalid", "spec.kubernetes.versions", text)
            raise refusal.invalid(definition, name, problem)
        if old is not None:
            self._versions_stay(definition, old, new)
        return None

    def _versions_stay(self, definition: Definition, old: Obj, new: Obj) -> None:
        name = name_of(new)
        gone = _versions(old) - _versions(new)
        for shoot in self.cluster.list(SHOOT) if gone else ():
            spec = shoot["spec"]
            if spec["cloudProfile"]["name"] == name and spec["kubernetes"]["version"] in gone:
                why = (
                    f'unable to delete Kubernetes version "{spec["kubernetes"]["version"]}" from '
                    f'CloudProfile "{name}" - version is still in use by shoot '
                    f"'{namespace_of(shoot)}/{name_of(shoot)}'"
                )
                raise refusal.forbidden(definition, name, why)

    def seed(self, what: str, new: Obj | None, old: Obj | None, user: User) -> Obj | None:
        del new, user
        if what == "DELETE" and old is not None:
            name = name_of(old)
            if any(one["spec"].get("seedName") == name for one in self.cluster.list(SHOOT)):
                why = f"cannot delete seed {name} since it is still used by shoot(s)"
                raise refusal.forbidden(self._definition(SEED), name, why)
        return None

    def binding(self, what: str, new: Obj | None, old: Obj | None, user: User) -> Obj | None:
        del old, user
        if new is None or what != "CREATE":
            return None
        named = part(new, "credentialsRef")
        kind: GK = ("", "Secret") if named.get("kind") == "Secret" else IDENTITY
        if self.cluster.get(kind, named.get("name", ""), named.get("namespace", "")) is None:
            why = f'{self._definition(kind).resource} "{named.get("name")}" not found'
            raise refusal.forbidden(self._definition(BINDING), name_of(new), why)
        return None

    def identity(self, what: str, new: Obj | None, old: Obj | None, user: User) -> Obj | None:
        """Who it is follows from its names, and is said at once."""
        del old, user
        if new is None or what != "CREATE":
            return None
        made = clone(new)
        uid = new["metadata"].get("uid", "")
        who = f"{namespace_of(new)}:{name_of(new)}:{uid}"
        made["status"] = {"sub": f"gardener.cloud:workloadidentity:{who}"}
        return made

    # Shoots

    def shoot(self, what: str, new: Obj | None, old: Obj | None, user: User) -> Obj | None:
        definition = self._definition(SHOOT)
        if what == "DELETE" and old is not None:
            self._confirmed(definition, old)
            return None
        if new is None or what == "STATUS":
            return None
        if what == "CREATE":
            return self._create(definition, new, user)
        assert old is not None  # noqa: S101 - an update has an old object
        return self._update(definition, new, old, user)

    def _confirmed(self, definition: Definition, obj: Obj) -> None:
        given = notes_of(obj).get(CONFIRMATION)
        if given != "true":
            why = f'must have a "{CONFIRMATION}" annotation to delete'
            raise refusal.forbidden(definition, name_of(obj), why)

    def _create(self, definition: Definition, new: Obj, user: User) -> Obj:
        name, namespace = name_of(new), namespace_of(new)
        project = self.project_of(namespace)
        if project is None:
            why = (
                'could not find referenced project: Project.core.gardener.cloud "<unknown>" '
                "not found"
            )
            raise refusal.forbidden(definition, name, why)
        if "gardener" in (items_of(new, "metadata.finalizers")):
            why = 'finalizer "gardener" cannot be added on creation'
            raise refusal.forbidden(definition, name, why)
        self._seeded(new)
        made = shoots.defaulted(clone(new), user.name)
        problems = shoots.problems(made)
        if len(name) + len(name_of(project)) > TOGETHER_MAX:
            text = (
                f'Invalid value: "{name}": the length of the shoot name and the project name must '
                f"not exceed {TOGETHER_MAX} characters"
            )
            problems.append(("FieldValueInvalid", "metadata.name", text))
        if problems:
            raise refusal.invalid(definition, name, *problems)
        profile = self._profile_of(made)
        self._references(definition, made)
        shoots.complete(made, profile)
        shoots.offered(definition, made, None, profile, self.cluster.time.now())
        return made

    def _profile_of(self, shoot: Obj) -> Obj:
        named = part(shoot, "spec.cloudProfile")
        own = named.get("kind") == "NamespacedCloudProfile"
        space = namespace_of(shoot) if own else ""
        found = self.cluster.get(OWN_PROFILE if own else PROFILE, named.get("name", ""), space)
        if found is None:
            raise Refused(
                500,
                "InternalError",
                "Internal error occurred: could not find referenced cloud profile: "
                f'cloudprofile.core.gardener.cloud "{named.get("name")}" not found',
            )
        if own:
            return {**found, "spec": part(found, "status.cloudProfileSpec")}
        return found

    def _references(self, definition: Definition, shoot: Obj) -> None:
        spec, name = shoot["spec"], name_of(shoot)
        kinds: set[tuple[str, str]] = {
            (one["kind"], one["type"])
            for registration in self.cluster.list(REGISTRATION)
            for one in items_of(registration, "spec.resources")
        }
        provider = spec["provider"]["type"]
        missing = [
            f'given Shoot uses non-registered provider type: spec.provider.type ("{provider}")'
            for kind in ("ControlPlane", "Infrastructure", "Worker")
            if (kind, provider) not in kinds
        ]
        network = part(spec, "networking").get("type")
        if ("Network", network) not in kinds:
            missing.append(
                "given Shoot uses non-registered networking type: spec.networking.type "
                f'("{network}")'
            )
        for number, worker in enumerate(items_of(spec, "provider.workers")):
            image = worker["machine"].get("image", {}).get("name")
            if image and ("OperatingSystemConfig", image) not in kinds:
                missing.append(
                    "given Shoot uses non-registered operating system type: "
                    f'spec.provider.workers[{number}].machine.image.name ("{image}")'
                )
        if missing:
            why = missing[0] if len(missing) == 1 else f"[{', '.join(missing)}]"
            raise refusal.forbidden(definition, name, why)
        self._named(definition, shoot)
        self._bound(definition, shoot)

    def _bound(self, definition: Definition, shoot: Obj) -> None:
        binding = shoot["spec"]["credentialsBindingName"]
        if self.cluster.get(BINDING, binding, namespace_of(shoot)) is None:
            why = f'credentialsbinding.security.gardener.cloud "{binding}" not found'
            raise refusal.forbidden(definition, name_of(shoot), why)

    def _seeded(self, shoot: Obj) -> None:
        """Before anything else is looked at, it is found out in which domain it will be."""
        seed = shoot["spec"].get("seedName")
        if seed and self.cluster.get(SEED, seed, "") is None:
            raise Refused(
                500,
                "InternalError",
                f"error retrieving default domains: Internal error occurred: could not get seed "
                f'{seed}: seed.core.gardener.cloud "{seed}" not found',
            )

    def _named(self, definition: Definition, shoot: Obj) -> None:
        """Objects that a Shoot names must be there."""
        spec, name, space = shoot["spec"], name_of(shoot), namespace_of(shoot)
        where = "kubernetes.kubeAPIServer.structuredAuthentication"
        config = part(spec, where).get("configMapName")
        if config and self.cluster.get(("", "ConfigMap"), config, space) is None:
            raise refusal.forbidden(definition, name, f'configmaps "{config}" not found')
        domain = part(spec, "dns").get("domain")
        if domain and any(
            part(one["spec"], "dns").get("domain") == domain
            for one in self.cluster.list(SHOOT)
            if (name_of(one), namespace_of(one)) != (name, space)
        ):
            why = f'spec.dns.domain: Duplicate value: "{domain}"'
            raise refusal.forbidden(definition, name, why)
        exposure = spec.get("exposureClassName")
        if exposure and self.cluster.get(EXPOSURE, exposure) is None:
            why = f'exposureclasses.core.gardener.cloud "{exposure}" not found'
            raise refusal.forbidden(definition, name, why)

    def _update(self, definition: Definition, new: Obj, old: Obj, user: User) -> Obj | None:
        name = name_of(new)
        if "deletionTimestamp" in old["metadata"] and new.get("spec") != old.get("spec"):
            text = "Invalid value: cannot update shoot spec if deletion timestamp is set"
            raise refusal.invalid(definition, name, ("FieldValueInvalid", "spec", text))
        self._finalizer_stays(definition, new, old)
        self._seeded(new)
        # The seed is chosen through `binding`; here it is passed over in silence.
        bound = new["spec"].get("seedName") != old["spec"].get("seedName")
        if bound and user.name != SCHEDULER:
            new = {**new, "spec": {**new["spec"]}}
            new["spec"].pop("seedName", None)
            if "seedName" in old["spec"]:
                new["spec"]["seedName"] = old["spec"]["seedName"]
        if new["spec"] != old["spec"]:
            made = shoots.defaulted(clone(new), "")
            problems = [*shoots.problems(made), *shoots.changes(made, old)]
            if problems:
                raise refusal.invalid(definition, name, *problems)
            self._named(definition, made)
            shoots.awake(definition, made, old)
            profile = self._profile_of(made)
            self._bound(definition, made)
            shoots.complete(made, profile)
            shoots.offered(definition, made, old, profile, self.cluster.time.now())
            new = made
        return operations.operated(definition, new, old)

    def _finalizer_stays(self, definition: Definition, new: Obj, old: Obj) -> None:
        had = "gardener" in (items_of(old, "metadata.finalizers"))
        has = "gardener" in (items_of(new, "metadata.finalizers"))
        last = part(old, "status.lastOperation")
        done = last.get("type") == "Delete" and last.get("state") == "Succeeded"
        if had and not has and not done:
            why = (
                'finalizer "gardener" cannot be removed because shoot deletion has not completed '
                "successfully yet"
            )
            raise refusal.forbidden(definition, name_of(new), why)


def _versions(profile: Obj) -> set[str]:
    return {one["version"] for one in part(profile, "spec.kubernetes").get("versions", ())}
