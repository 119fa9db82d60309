"""
The fields of the built-in kinds: their names, types, and numbers in protobuf.

Data only; names and numbers are part of the Kubernetes API and never change. `Kind:` is followed
by its fields, as `name=number` and the type: nothing for text, `i` a number, `b` a truth, `d` a
fraction, `y` bytes, `@time`, `@quantity`, `@either` (a number or text), or another kind; before it
`*` for a list and `%` for a map (`%*`: of lists of text). `!`: an empty value says something. No
name: it stands in its holder. Nodes and PersistentVolumes, which only servers write, are left out.
"""

FIELDS = """
AWSElasticBlockStoreVolumeSource: volumeID=1! fsType=2 partition=3i readOnly=4b
Affinity: nodeAffinity=1NodeAffinity! podAffinity=2PodAffinity! podAntiAffinity=3PodAntiAffinity!
AggregationRule: clusterRoleSelectors=1*LabelSelector
AppArmorProfile: type=1! localhostProfile=2!
AzureDiskVolumeSource: diskName=1! diskURI=2! cachingMode=3! fsType=4! readOnly=5b! kind=6!
AzureFileVolumeSource: secretName=1! shareName=2! readOnly=3b
Binding: metadata=1ObjectMeta target=2ObjectReference
BoundObjectReference: kind=1 apiVersion=2 name=3 uid=4
CSIVolumeSource: driver=1! readOnly=2b! fsType=3! volumeAttributes=4%
 nodePublishSecretRef=5LocalObjectReference!
Capabilities: add=1* drop=2*
CephFSVolumeSource: monitors=1* path=2 user=3 secretFile=4 secretRef=5LocalObjectReference!
 readOnly=6b
CinderVolumeSource: volumeID=1! fsType=2 readOnly=3b secretRef=4LocalObjectReference!
ClientIPConfig: timeoutSeconds=1i!
ClusterRole: metadata=1ObjectMeta rules=2*PolicyRule aggregationRule=3AggregationRule!
ClusterRoleBinding: metadata=1ObjectMeta subjects=2*Subject roleRef=3RoleRef
ClusterTrustBundleProjection: name=1! signerName=2! labelSelector=3LabelSelector! optional=5b!
 path=4!
Condition: type=1! status=2! observedGeneration=3i lastTransitionTime=4@time reason=5! message=6!
ConfigMap: metadata=1ObjectMeta immutable=4b! data=2% binaryData=3%y
ConfigMapEnvSource: =1LocalObjectReference optional=2b!
ConfigMapKeySelector: =1LocalObjectReference key=2! optional=3b!
ConfigMapProjection: =1LocalObjectReference items=2*KeyToPath optional=4b!
ConfigMapVolumeSource: =1LocalObjectReference items=2*KeyToPath defaultMode=3i! optional=4b!
Container: name=1! image=2 command=3* args=4* workingDir=5 ports=6*ContainerPort
 envFrom=19*EnvFromSource env=7*EnvVar resources=8ResourceRequirements
 resizePolicy=23*ContainerResizePolicy restartPolicy=24! restartPolicyRules=25*ContainerRestartRule
 volumeMounts=9*VolumeMount volumeDevices=21*VolumeDevice livenessProbe=10Probe!
 readinessProbe=11Probe! startupProbe=22Probe! lifecycle=12Lifecycle! terminationMessagePath=13
 terminationMessagePolicy=20 imagePullPolicy=14 securityContext=15SecurityContext! stdin=16b
 stdinOnce=17b tty=18b
ContainerExtendedResourceRequest: containerName=1! resourceName=2! requestName=3!
ContainerPort: name=1 hostPort=2i containerPort=3i! protocol=4 hostIP=5
ContainerResizePolicy: resourceName=1! restartPolicy=2!
ContainerResourceMetricSource: name=1! target=2MetricTarget container=3!
ContainerResourceMetricStatus: name=1! current=2MetricValueStatus container=3!
ContainerRestartRule: action=1 exitCodes=2ContainerRestartRuleOnExitCodes!
ContainerRestartRuleOnExitCodes: operator=1 values=2*i
ContainerState: waiting=1ContainerStateWaiting! running=2ContainerStateRunning!
 terminated=3ContainerStateTerminated!
ContainerStateRunning: startedAt=1@time
ContainerStateTerminated: exitCode=1i! signal=2i reason=3 message=4 startedAt=5@time
 finishedAt=6@time containerID=7
ContainerStateWaiting: reason=1 message=2
ContainerStatus: name=1! state=2ContainerState lastState=3ContainerState ready=4b! restartCount=5i!
 image=6! imageID=7! containerID=8 started=9b! allocatedResources=10%@quantity
 resources=11ResourceRequirements! volumeMounts=12*VolumeMountStatus user=13ContainerUser!
 allocatedResourcesStatus=14*ResourceStatus stopSignal=15!
ContainerUser: linux=1LinuxContainerUser!
CronJob: metadata=1ObjectMeta spec=2CronJobSpec status=3CronJobStatus
CronJobSpec: schedule=1! timeZone=8! startingDeadlineSeconds=2i! concurrencyPolicy=3 suspend=4b!
 jobTemplate=5JobTemplateSpec successfulJobsHistoryLimit=6i! failedJobsHistoryLimit=7i!
CronJobStatus: active=1*ObjectReference lastScheduleTime=4@time! lastSuccessfulTime=5@time!
CrossVersionObjectReference: kind=1! name=2! apiVersion=3
DaemonSet: metadata=1ObjectMeta spec=2DaemonSetSpec status=3DaemonSetStatus
DaemonSetCondition: type=1! status=2! lastTransitionTime=3@time reason=4 message=5
DaemonSetSpec: selector=1LabelSelector! template=2PodTemplateSpec
 updateStrategy=3DaemonSetUpdateStrategy minReadySeconds=4i revisionHistoryLimit=6i!
DaemonSetStatus: currentNumberScheduled=1i! numberMisscheduled=2i! desiredNumberScheduled=3i!
 numberReady=4i! observedGeneration=5i updatedNumberScheduled=6i numberAvailable=7i
 numberUnavailable=8i collisionCount=9i! conditions=10*DaemonSetCondition
DaemonSetUpdateStrategy: type=1 rollingUpdate=2RollingUpdateDaemonSet!
DeleteOptions: gracePeriodSeconds=1i! preconditions=2Preconditions! orphanDependents=3b!
 propagationPolicy=4! dryRun=5* ignoreStoreReadErrorWithClusterBreakingPotential=6b!
Deployment: metadata=1ObjectMeta spec=2DeploymentSpec status=3DeploymentStatus
DeploymentCondition: type=1! status=2! lastUpdateTime=6@time lastTransitionTime=7@time reason=4
 message=5
DeploymentSpec: replicas=1i! selector=2LabelSelector! template=3PodTemplateSpec
 strategy=4DeploymentStrategy minReadySeconds=5i revisionHistoryLimit=6i! paused=7b
 progressDeadlineSeconds=9i!
DeploymentStatus: observedGeneration=1i replicas=2i updatedReplicas=3i readyReplicas=7i
 availableReplicas=4i unavailableReplicas=5i terminatingReplicas=9i!
 conditions=6*DeploymentCondition collisionCount=8i!
DeploymentStrategy: type=1 rollingUpdate=2RollingUpdateDeployment!
DownwardAPIProjection: items=1*DownwardAPIVolumeFile
DownwardAPIVolumeFile: path=1! fieldRef=2ObjectFieldSelector!
 resourceFieldRef=3ResourceFieldSelector! mode=4i!
DownwardAPIVolumeSource: items=1*DownwardAPIVolumeFile defaultMode=2i!
EmptyDirVolumeSource: medium=1 sizeLimit=2@quantity!
EndpointAddress: ip=1! hostname=3 nodeName=4! targetRef=2ObjectReference!
EndpointPort: name=1 port=2i! protocol=3 appProtocol=4!
EndpointSubset: addresses=1*EndpointAddress notReadyAddresses=2*EndpointAddress
 ports=3*EndpointPort
Endpoints: metadata=1ObjectMeta subsets=2*EndpointSubset
EnvFromSource: prefix=1 configMapRef=2ConfigMapEnvSource! secretRef=3SecretEnvSource!
EnvVar: name=1! value=2 valueFrom=3EnvVarSource!
EnvVarSource: fieldRef=1ObjectFieldSelector! resourceFieldRef=2ResourceFieldSelector!
 configMapKeyRef=3ConfigMapKeySelector! secretKeyRef=4SecretKeySelector!
 fileKeyRef=5FileKeySelector!
EphemeralContainer: =1EphemeralContainerCommon targetContainerName=2
EphemeralContainerCommon: name=1! image=2 command=3* args=4* workingDir=5 ports=6*ContainerPort
 envFrom=19*EnvFromSource env=7*EnvVar resources=8ResourceRequirements
 resizePolicy=23*ContainerResizePolicy restartPolicy=24! restartPolicyRules=25*ContainerRestartRule
 volumeMounts=9*VolumeMount volumeDevices=21*VolumeDevice livenessProbe=10Probe!
 readinessProbe=11Probe! startupProbe=22Probe! lifecycle=12Lifecycle! terminationMessagePath=13
 terminationMessagePolicy=20 imagePullPolicy=14 securityContext=15SecurityContext! stdin=16b
 stdinOnce=17b tty=18b
EphemeralVolumeSource: volumeClaimTemplate=1PersistentVolumeClaimTemplate!
Event: metadata=1ObjectMeta involvedObject=2ObjectReference reason=3 message=4 source=5EventSource
 firstTimestamp=6@time lastTimestamp=7@time count=8i type=9 eventTime=10@time series=11EventSeries!
 action=12 related=13ObjectReference! reportingComponent=14! reportingInstance=15!
EventSeries: count=1i lastObservedTime=2@time
EventSource: component=1 host=2
Eviction: metadata=1ObjectMeta deleteOptions=2DeleteOptions!
ExecAction: command=1*
ExternalMetricSource: metric=1MetricIdentifier target=2MetricTarget
ExternalMetricStatus: metric=1MetricIdentifier current=2MetricValueStatus
FCVolumeSource: targetWWNs=1* lun=2i! fsType=3 readOnly=4b wwids=5*
FieldSelectorAttributes: rawSelector=1 requirements=2*FieldSelectorRequirement
FieldSelectorRequirement: key=1! operator=2! values=3*
FileKeySelector: volumeName=1! path=2! key=3! optional=4b!
FlexVolumeSource: driver=1! fsType=2 secretRef=3LocalObjectReference! readOnly=4b options=5%
FlockerVolumeSource: datasetName=1 datasetUUID=2
GCEPersistentDiskVolumeSource: pdName=1! fsType=2 partition=3i readOnly=4b
GRPCAction: port=1i! service=2!
GitRepoVolumeSource: repository=1! revision=2 directory=3
GlusterfsVolumeSource: endpoints=1! path=2! readOnly=3b
HPAScalingPolicy: type=1! value=2i! periodSeconds=3i!
HPAScalingRules: stabilizationWindowSeconds=3i! selectPolicy=1! policies=2*HPAScalingPolicy
 tolerance=4@quantity!
HTTPGetAction: path=1 port=2@either host=3 scheme=4 httpHeaders=5*HTTPHeader
HTTPHeader: name=1! value=2!
HTTPIngressPath: path=1 pathType=3! backend=2IngressBackend
HTTPIngressRuleValue: paths=1*HTTPIngressPath
HorizontalPodAutoscaler: metadata=1ObjectMeta spec=2HorizontalPodAutoscalerSpec
 status=3HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerBehavior: scaleUp=1HPAScalingRules! scaleDown=2HPAScalingRules!
HorizontalPodAutoscalerCondition: type=1! status=2! lastTransitionTime=3@time reason=4 message=5
HorizontalPodAutoscalerSpec: scaleTargetRef=1CrossVersionObjectReference minReplicas=2i!
 maxReplicas=3i! metrics=4*MetricSpec behavior=5HorizontalPodAutoscalerBehavior!
HorizontalPodAutoscalerStatus: observedGeneration=1i! lastScaleTime=2@time! currentReplicas=3i
 desiredReplicas=4i! currentMetrics=5*MetricStatus conditions=6*HorizontalPodAutoscalerCondition
HostAlias: ip=1! hostnames=2*
HostIP: ip=1!
HostPathVolumeSource: path=1! type=2!
IPBlock: cidr=1! except=2*
ISCSIVolumeSource: targetPortal=1! iqn=2! lun=3i! iscsiInterface=4 fsType=5 readOnly=6b portals=7*
 chapAuthDiscovery=8b chapAuthSession=11b secretRef=10LocalObjectReference! initiatorName=12!
ImageVolumeSource: reference=1 pullPolicy=2
ImageVolumeStatus: imageRef=1
Ingress: metadata=1ObjectMeta spec=2IngressSpec status=3IngressStatus
IngressBackend: service=4IngressServiceBackend! resource=3TypedLocalObjectReference!
IngressLoadBalancerIngress: ip=1 hostname=2 ports=4*IngressPortStatus
IngressLoadBalancerStatus: ingress=1*IngressLoadBalancerIngress
IngressPortStatus: port=1i! protocol=2! error=3!
IngressRule: host=1 =2IngressRuleValue
IngressRuleValue: http=1HTTPIngressRuleValue!
IngressServiceBackend: name=1! port=2ServiceBackendPort
IngressSpec: ingressClassName=4! defaultBackend=1IngressBackend! tls=2*IngressTLS
 rules=3*IngressRule
IngressStatus: loadBalancer=1IngressLoadBalancerStatus
IngressTLS: hosts=1* secretName=2
Job: metadata=1ObjectMeta spec=2JobSpec status=3JobStatus
JobCondition: type=1! status=2! lastProbeTime=3@time lastTransitionTime=4@time reason=5 message=6
JobSpec: parallelism=1i! completions=2i! activeDeadlineSeconds=3i!
 podFailurePolicy=11PodFailurePolicy! successPolicy=16SuccessPolicy! backoffLimit=7i!
 backoffLimitPerIndex=12i! maxFailedIndexes=13i! selector=4LabelSelector! manualSelector=5b!
 template=6PodTemplateSpec ttlSecondsAfterFinished=8i! completionMode=9! suspend=10b!
 podReplacementPolicy=14! managedBy=15!
JobStatus: conditions=1*JobCondition startTime=2@time! completionTime=3@time! active=4i
 succeeded=5i failed=6i terminating=11i! completedIndexes=7 failedIndexes=10!
 uncountedTerminatedPods=8UncountedTerminatedPods! ready=9i!
JobTemplateSpec: metadata=1ObjectMeta spec=2JobSpec
KeyToPath: key=1! path=2! mode=3i!
LabelSelector: matchLabels=1% matchExpressions=2*LabelSelectorRequirement
LabelSelectorAttributes: rawSelector=1 requirements=2*LabelSelectorRequirement
LabelSelectorRequirement: key=1! operator=2! values=3*
Lease: metadata=1ObjectMeta spec=2LeaseSpec
LeaseSpec: holderIdentity=1! leaseDurationSeconds=2i! acquireTime=3@time! renewTime=4@time!
 leaseTransitions=5i! strategy=6! preferredHolder=7!
Lifecycle: postStart=1LifecycleHandler! preStop=2LifecycleHandler! stopSignal=3!
LifecycleHandler: exec=1ExecAction! httpGet=2HTTPGetAction! tcpSocket=3TCPSocketAction!
 sleep=4SleepAction!
LimitRange: metadata=1ObjectMeta spec=2LimitRangeSpec
LimitRangeItem: type=1! max=2%@quantity min=3%@quantity default=4%@quantity
 defaultRequest=5%@quantity maxLimitRequestRatio=6%@quantity
LimitRangeSpec: limits=1*LimitRangeItem
LinuxContainerUser: uid=1i! gid=2i! supplementalGroups=3*i
LoadBalancerIngress: ip=1 hostname=2 ipMode=3! ports=4*PortStatus
LoadBalancerStatus: ingress=1*LoadBalancerIngress
LocalObjectReference: name=1
LocalSubjectAccessReview: metadata=1ObjectMeta spec=2SubjectAccessReviewSpec
 status=3SubjectAccessReviewStatus
MetricIdentifier: name=1! selector=2LabelSelector!
MetricSpec: type=1! object=2ObjectMetricSource! pods=3PodsMetricSource!
 resource=4ResourceMetricSource! containerResource=7ContainerResourceMetricSource!
 external=5ExternalMetricSource!
MetricStatus: type=1! object=2ObjectMetricStatus! pods=3PodsMetricStatus!
 resource=4ResourceMetricStatus! containerResource=7ContainerResourceMetricStatus!
 external=5ExternalMetricStatus!
MetricTarget: type=1! value=2@quantity! averageValue=3@quantity! averageUtilization=4i!
MetricValueStatus: value=1@quantity! averageValue=2@quantity! averageUtilization=3i!
ModifyVolumeStatus: targetVolumeAttributesClassName=1 status=2!
NFSVolumeSource: server=1! path=2! readOnly=3b
Namespace: metadata=1ObjectMeta spec=2NamespaceSpec status=3NamespaceStatus
NamespaceCondition: type=1! status=2! lastTransitionTime=4@time reason=5 message=6
NamespaceSpec: finalizers=1*
NamespaceStatus: phase=1 conditions=2*NamespaceCondition
NetworkPolicy: metadata=1ObjectMeta spec=2NetworkPolicySpec
NetworkPolicyEgressRule: ports=1*NetworkPolicyPort to=2*NetworkPolicyPeer
NetworkPolicyIngressRule: ports=1*NetworkPolicyPort from=2*NetworkPolicyPeer
NetworkPolicyPeer: podSelector=1LabelSelector! namespaceSelector=2LabelSelector! ipBlock=3IPBlock!
NetworkPolicyPort: protocol=1! port=2@either! endPort=3i!
NetworkPolicySpec: podSelector=1LabelSelector ingress=2*NetworkPolicyIngressRule
 egress=3*NetworkPolicyEgressRule policyTypes=4*
NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution=1NodeSelector!
 preferredDuringSchedulingIgnoredDuringExecution=2*PreferredSchedulingTerm
NodeAllocatableResourceClaimStatus: resourceClaimName=1! containers=2* resources=3%@quantity
NodeSelector: nodeSelectorTerms=1*NodeSelectorTerm
NodeSelectorRequirement: key=1! operator=2! values=3*
NodeSelectorTerm: matchExpressions=1*NodeSelectorRequirement matchFields=2*NodeSelectorRequirement
NonResourceAttributes: path=1 verb=2
NonResourceRule: verbs=1* nonResourceURLs=2*
ObjectFieldSelector: apiVersion=1 fieldPath=2!
ObjectMeta: name=1 generateName=2 namespace=3 selfLink=4 uid=5 resourceVersion=6 generation=7i
 creationTimestamp=8@time deletionTimestamp=9@time! deletionGracePeriodSeconds=10i! labels=11%
 annotations=12% ownerReferences=13*OwnerReference finalizers=14*
ObjectMetricSource: describedObject=1CrossVersionObjectReference target=2MetricTarget
 metric=3MetricIdentifier
ObjectMetricStatus: metric=1MetricIdentifier current=2MetricValueStatus
 describedObject=3CrossVersionObjectReference
ObjectReference: kind=1 namespace=2 name=3 uid=4 apiVersion=5 resourceVersion=6 fieldPath=7
OwnerReference: apiVersion=5! kind=1! name=3! uid=4! controller=6b! blockOwnerDeletion=7b!
PersistentVolumeClaim: metadata=1ObjectMeta spec=2PersistentVolumeClaimSpec
 status=3PersistentVolumeClaimStatus
PersistentVolumeClaimCondition: type=1! status=2! lastProbeTime=3@time lastTransitionTime=4@time
 reason=5 message=6
PersistentVolumeClaimSpec: accessModes=1* selector=4LabelSelector!
 resources=2VolumeResourceRequirements volumeName=3 storageClassName=5! volumeMode=6!
 dataSource=7TypedLocalObjectReference! dataSourceRef=8TypedObjectReference!
 volumeAttributesClassName=9!
PersistentVolumeClaimStatus: phase=1 accessModes=2* capacity=3%@quantity
 conditions=4*PersistentVolumeClaimCondition allocatedResources=5%@quantity
 allocatedResourceStatuses=7% currentVolumeAttributesClassName=8!
 modifyVolumeStatus=9ModifyVolumeStatus!
PersistentVolumeClaimTemplate: metadata=1ObjectMeta spec=2PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource: claimName=1! readOnly=2b
PhotonPersistentDiskVolumeSource: pdID=1! fsType=2
Pod: metadata=1ObjectMeta spec=2PodSpec status=3PodStatus
PodAffinity: requiredDuringSchedulingIgnoredDuringExecution=1*PodAffinityTerm
 preferredDuringSchedulingIgnoredDuringExecution=2*WeightedPodAffinityTerm
PodAffinityTerm: labelSelector=1LabelSelector! namespaces=2* topologyKey=3!
 namespaceSelector=4LabelSelector! matchLabelKeys=5* mismatchLabelKeys=6*
PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution=1*PodAffinityTerm
 preferredDuringSchedulingIgnoredDuringExecution=2*WeightedPodAffinityTerm
PodCertificateProjection: signerName=1 keyType=2 maxExpirationSeconds=3i! credentialBundlePath=4
 keyPath=5 certificateChainPath=6 userAnnotations=7%
PodCondition: type=1! observedGeneration=7i status=2! lastProbeTime=3@time
 lastTransitionTime=4@time reason=5 message=6
PodDNSConfig: nameservers=1* searches=2* options=3*PodDNSConfigOption
PodDNSConfigOption: name=1 value=2!
PodDisruptionBudget: metadata=1ObjectMeta spec=2PodDisruptionBudgetSpec
 status=3PodDisruptionBudgetStatus
PodDisruptionBudgetSpec: minAvailable=1@either! selector=2LabelSelector! maxUnavailable=3@either!
 unhealthyPodEvictionPolicy=4!
PodDisruptionBudgetStatus: observedGeneration=1i disruptedPods=2%@time disruptionsAllowed=3i!
 currentHealthy=4i! desiredHealthy=5i! expectedPods=6i! conditions=7*Condition
PodExtendedResourceClaimStatus: requestMappings=1*ContainerExtendedResourceRequest
 resourceClaimName=2!
PodFailurePolicy: rules=1*PodFailurePolicyRule
PodFailurePolicyOnExitCodesRequirement: containerName=1! operator=2! values=3*i
PodFailurePolicyOnPodConditionsPattern: type=1! status=2!
PodFailurePolicyRule: action=1! onExitCodes=2PodFailurePolicyOnExitCodesRequirement!
 onPodConditions=3*PodFailurePolicyOnPodConditionsPattern
PodIP: ip=1!
PodOS: name=1!
PodReadinessGate: conditionType=1!
PodResourceClaim: name=1! resourceClaimName=3! resourceClaimTemplateName=4!
PodResourceClaimStatus: name=1! resourceClaimName=2!
PodSchedulingGate: name=1!
PodSchedulingGroup: podGroupName=1!
PodSecurityContext: seLinuxOptions=1SELinuxOptions! windowsOptions=8WindowsSecurityContextOptions!
 runAsUser=2i! runAsGroup=6i! runAsNonRoot=3b! supplementalGroups=4*i supplementalGroupsPolicy=12!
 fsGroup=5i! sysctls=7*Sysctl fsGroupChangePolicy=9! seccompProfile=10SeccompProfile!
 appArmorProfile=11AppArmorProfile! seLinuxChangePolicy=13!
PodSpec: volumes=1*Volume initContainers=20*Container containers=2*Container
 ephemeralContainers=34*EphemeralContainer restartPolicy=3 terminationGracePeriodSeconds=4i!
 activeDeadlineSeconds=5i! dnsPolicy=6 nodeSelector=7% serviceAccountName=8 serviceAccount=9
 automountServiceAccountToken=21b! nodeName=10 hostNetwork=11b hostPID=12b hostIPC=13b
 shareProcessNamespace=27b! securityContext=14PodSecurityContext!
 imagePullSecrets=15*LocalObjectReference hostname=16 subdomain=17 affinity=18Affinity!
 schedulerName=19 tolerations=22*Toleration hostAliases=23*HostAlias priorityClassName=24
 priority=25i! dnsConfig=26PodDNSConfig! readinessGates=28*PodReadinessGate runtimeClassName=29!
 enableServiceLinks=30b! preemptionPolicy=31! overhead=32%@quantity
 topologySpreadConstraints=33*TopologySpreadConstraint setHostnameAsFQDN=35b! os=36PodOS!
 hostUsers=37b! schedulingGates=38*PodSchedulingGate resourceClaims=39*PodResourceClaim
 resources=40ResourceRequirements! hostnameOverride=41! schedulingGroup=43PodSchedulingGroup!
PodStatus: observedGeneration=17i phase=1 conditions=2*PodCondition message=3 reason=4
 nominatedNodeName=11 hostIP=5 hostIPs=16*HostIP podIP=6 podIPs=12*PodIP startTime=7@time!
 initContainerStatuses=10*ContainerStatus containerStatuses=8*ContainerStatus qosClass=9
 ephemeralContainerStatuses=13*ContainerStatus resize=14
 resourceClaimStatuses=15*PodResourceClaimStatus
 extendedResourceClaimStatus=18PodExtendedResourceClaimStatus! allocatedResources=19%@quantity
 resources=20ResourceRequirements!
 nodeAllocatableResourceClaimStatuses=21*NodeAllocatableResourceClaimStatus
PodTemplateSpec: metadata=1ObjectMeta spec=2PodSpec
PodsMetricSource: metric=1MetricIdentifier target=2MetricTarget
PodsMetricStatus: metric=1MetricIdentifier current=2MetricValueStatus
PolicyRule: verbs=1* apiGroups=2* resources=3* resourceNames=4* nonResourceURLs=5*
PortStatus: port=1i! protocol=2! error=3!
PortworxVolumeSource: volumeID=1! fsType=2 readOnly=3b
Preconditions: uid=1! resourceVersion=2!
PreferredSchedulingTerm: weight=1i! preference=2NodeSelectorTerm
PriorityClass: metadata=1ObjectMeta value=2i! globalDefault=3b description=4 preemptionPolicy=5!
Probe: =1ProbeHandler initialDelaySeconds=2i timeoutSeconds=3i periodSeconds=4i successThreshold=5i
 failureThreshold=6i terminationGracePeriodSeconds=7i!
ProbeHandler: exec=1ExecAction! httpGet=2HTTPGetAction! tcpSocket=3TCPSocketAction!
 grpc=4GRPCAction!
ProjectedVolumeSource: sources=1*VolumeProjection defaultMode=2i!
QuobyteVolumeSource: registry=1! volume=2! readOnly=3b user=4 group=5 tenant=6
RBDVolumeSource: monitors=1* image=2! fsType=3 pool=4 user=5 keyring=6
 secretRef=7LocalObjectReference! readOnly=8b
ReplicaSet: metadata=1ObjectMeta spec=2ReplicaSetSpec status=3ReplicaSetStatus
ReplicaSetCondition: type=1! status=2! lastTransitionTime=3@time reason=4 message=5
ReplicaSetSpec: replicas=1i! minReadySeconds=4i selector=2LabelSelector! template=3PodTemplateSpec
ReplicaSetStatus: replicas=1i! fullyLabeledReplicas=2i readyReplicas=4i availableReplicas=5i
 terminatingReplicas=7i! observedGeneration=3i conditions=6*ReplicaSetCondition
ResourceAttributes: namespace=1 verb=2 group=3 version=4 resource=5 subresource=6 name=7
 fieldSelector=8FieldSelectorAttributes! labelSelector=9LabelSelectorAttributes!
ResourceClaim: name=1! request=2
ResourceFieldSelector: containerName=1 resource=2! divisor=3@quantity
ResourceHealth: resourceID=1! health=2 message=6!
ResourceMetricSource: name=1! target=2MetricTarget
ResourceMetricStatus: name=1! current=2MetricValueStatus
ResourceQuota: metadata=1ObjectMeta spec=2ResourceQuotaSpec status=3ResourceQuotaStatus
ResourceQuotaSpec: hard=1%@quantity scopes=2* scopeSelector=3ScopeSelector!
ResourceQuotaStatus: hard=1%@quantity used=2%@quantity
ResourceRequirements: limits=1%@quantity requests=2%@quantity claims=3*ResourceClaim
ResourceRule: verbs=1* apiGroups=2* resources=3* resourceNames=4*
ResourceStatus: name=1! resources=2*ResourceHealth
Role: metadata=1ObjectMeta rules=2*PolicyRule
RoleBinding: metadata=1ObjectMeta subjects=2*Subject roleRef=3RoleRef
RoleRef: apiGroup=1! kind=2! name=3!
RollingUpdateDaemonSet: maxUnavailable=1@either! maxSurge=2@either!
RollingUpdateDeployment: maxUnavailable=1@either! maxSurge=2@either!
RollingUpdateStatefulSetStrategy: partition=1i! maxUnavailable=2@either!
SELinuxOptions: user=1 role=2 type=3 level=4
Scale: metadata=1ObjectMeta spec=2ScaleSpec status=3ScaleStatus
ScaleIOVolumeSource: gateway=1! system=2! secretRef=3LocalObjectReference! sslEnabled=4b
 protectionDomain=5 storagePool=6 storageMode=7 volumeName=8 fsType=9 readOnly=10b
ScaleSpec: replicas=1i
ScaleStatus: replicas=1i! selector=2
ScopeSelector: matchExpressions=1*ScopedResourceSelectorRequirement
ScopedResourceSelectorRequirement: scopeName=1! operator=2! values=3*
SeccompProfile: type=1! localhostProfile=2!
Secret: metadata=1ObjectMeta immutable=5b! data=2%y stringData=4% type=3
SecretEnvSource: =1LocalObjectReference optional=2b!
SecretKeySelector: =1LocalObjectReference key=2! optional=3b!
SecretProjection: =1LocalObjectReference items=2*KeyToPath optional=4b!
SecretVolumeSource: secretName=1 items=2*KeyToPath defaultMode=3i! optional=4b!
SecurityContext: capabilities=1Capabilities! privileged=2b! seLinuxOptions=3SELinuxOptions!
 windowsOptions=10WindowsSecurityContextOptions! runAsUser=4i! runAsGroup=8i! runAsNonRoot=5b!
 readOnlyRootFilesystem=6b! allowPrivilegeEscalation=7b! procMount=9!
 seccompProfile=11SeccompProfile! appArmorProfile=12AppArmorProfile!
SelfSubjectAccessReview: metadata=1ObjectMeta spec=2SelfSubjectAccessReviewSpec
 status=3SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec: resourceAttributes=1ResourceAttributes!
 nonResourceAttributes=2NonResourceAttributes!
SelfSubjectReview: metadata=1ObjectMeta status=2SelfSubjectReviewStatus
SelfSubjectReviewStatus: userInfo=1UserInfo
SelfSubjectRulesReview: metadata=1ObjectMeta spec=2SelfSubjectRulesReviewSpec
 status=3SubjectRulesReviewStatus
SelfSubjectRulesReviewSpec: namespace=1
Service: metadata=1ObjectMeta spec=2ServiceSpec status=3ServiceStatus
ServiceAccount: metadata=1ObjectMeta secrets=2*ObjectReference
 imagePullSecrets=3*LocalObjectReference automountServiceAccountToken=4b!
ServiceAccountTokenProjection: audience=1 expirationSeconds=2i! path=3!
ServiceBackendPort: name=1 number=2i
ServicePort: name=1 protocol=2 appProtocol=6! port=3i! targetPort=4@either nodePort=5i
ServiceSpec: ports=1*ServicePort selector=2% clusterIP=3 clusterIPs=18* type=4 externalIPs=5*
 sessionAffinity=7 loadBalancerIP=8 loadBalancerSourceRanges=9* externalName=10
 externalTrafficPolicy=11 healthCheckNodePort=12i publishNotReadyAddresses=13b
 sessionAffinityConfig=14SessionAffinityConfig! ipFamilies=19* ipFamilyPolicy=17!
 allocateLoadBalancerNodePorts=20b! loadBalancerClass=21! internalTrafficPolicy=22!
 trafficDistribution=23!
ServiceStatus: loadBalancer=1LoadBalancerStatus conditions=2*Condition
SessionAffinityConfig: clientIP=1ClientIPConfig!
SleepAction: seconds=1i!
StatefulSet: metadata=1ObjectMeta spec=2StatefulSetSpec status=3StatefulSetStatus
StatefulSetCondition: type=1! status=2! lastTransitionTime=3@time reason=4 message=5
StatefulSetOrdinals: start=1i!
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted=1 whenScaled=2
StatefulSetSpec: replicas=1i! selector=2LabelSelector! template=3PodTemplateSpec
 volumeClaimTemplates=4*PersistentVolumeClaim serviceName=5! podManagementPolicy=6
 updateStrategy=7StatefulSetUpdateStrategy revisionHistoryLimit=8i! minReadySeconds=9i
 persistentVolumeClaimRetentionPolicy=10StatefulSetPersistentVolumeClaimRetentionPolicy!
 ordinals=11StatefulSetOrdinals!
StatefulSetStatus: observedGeneration=1i replicas=2i! readyReplicas=3i currentReplicas=4i
 updatedReplicas=5i currentRevision=6 updateRevision=7 collisionCount=9i!
 conditions=10*StatefulSetCondition availableReplicas=11i!
StatefulSetUpdateStrategy: type=1 rollingUpdate=2RollingUpdateStatefulSetStrategy!
StorageClass: metadata=1ObjectMeta provisioner=2! parameters=3% reclaimPolicy=4! mountOptions=5*
 allowVolumeExpansion=6b! volumeBindingMode=7! allowedTopologies=8*TopologySelectorTerm
StorageOSVolumeSource: volumeName=1 volumeNamespace=2 fsType=3 readOnly=4b
 secretRef=5LocalObjectReference!
Subject: kind=1! apiGroup=2 name=3! namespace=4
SubjectAccessReview: metadata=1ObjectMeta spec=2SubjectAccessReviewSpec
 status=3SubjectAccessReviewStatus
SubjectAccessReviewSpec: resourceAttributes=1ResourceAttributes!
 nonResourceAttributes=2NonResourceAttributes! user=3 groups=4* extra=5%* uid=6
SubjectAccessReviewStatus: allowed=1b! denied=4b reason=2 evaluationError=3
SubjectRulesReviewStatus: resourceRules=1*ResourceRule nonResourceRules=2*NonResourceRule
 incomplete=3b! evaluationError=4
SuccessPolicy: rules=1*SuccessPolicyRule
SuccessPolicyRule: succeededIndexes=1! succeededCount=2i!
Sysctl: name=1! value=2!
TCPSocketAction: port=1@either host=2
TokenRequest: metadata=1ObjectMeta spec=2TokenRequestSpec status=3TokenRequestStatus
TokenRequestSpec: audiences=1* expirationSeconds=4i! boundObjectRef=3BoundObjectReference!
TokenRequestStatus: token=1! expirationTimestamp=2@time
TokenReview: metadata=1ObjectMeta spec=2TokenReviewSpec status=3TokenReviewStatus
TokenReviewSpec: token=1 audiences=2*
TokenReviewStatus: authenticated=1b user=2UserInfo audiences=4* error=3
Toleration: key=1 operator=2 value=3 effect=4 tolerationSeconds=5i!
TopologySelectorLabelRequirement: key=1! values=2*
TopologySelectorTerm: matchLabelExpressions=1*TopologySelectorLabelRequirement
TopologySpreadConstraint: maxSkew=1i! topologyKey=2! whenUnsatisfiable=3!
 labelSelector=4LabelSelector! minDomains=5i! nodeAffinityPolicy=6! nodeTaintsPolicy=7!
 matchLabelKeys=8*
TypedLocalObjectReference: apiGroup=1! kind=2! name=3!
TypedObjectReference: apiGroup=1! kind=2! name=3! namespace=4!
UncountedTerminatedPods: succeeded=1* failed=2*
UserInfo: username=1 uid=2 groups=3* extra=4%*
Volume: name=1! =2VolumeSource
VolumeDevice: name=1! devicePath=2!
VolumeMount: name=1! readOnly=2b recursiveReadOnly=7! mountPath=3! subPath=4 mountPropagation=5!
 subPathExpr=6
VolumeMountStatus: name=1! mountPath=2! readOnly=3b recursiveReadOnly=4!
 volumeStatus=5VolumeStatus!
VolumeProjection: secret=1SecretProjection! downwardAPI=2DownwardAPIProjection!
 configMap=3ConfigMapProjection! serviceAccountToken=4ServiceAccountTokenProjection!
 clusterTrustBundle=5ClusterTrustBundleProjection! podCertificate=6PodCertificateProjection!
VolumeResourceRequirements: limits=1%@quantity requests=2%@quantity
VolumeSource: hostPath=1HostPathVolumeSource! emptyDir=2EmptyDirVolumeSource!
 gcePersistentDisk=3GCEPersistentDiskVolumeSource!
 awsElasticBlockStore=4AWSElasticBlockStoreVolumeSource! gitRepo=5GitRepoVolumeSource!
 secret=6SecretVolumeSource! nfs=7NFSVolumeSource! iscsi=8ISCSIVolumeSource!
 glusterfs=9GlusterfsVolumeSource! persistentVolumeClaim=10PersistentVolumeClaimVolumeSource!
 rbd=11RBDVolumeSource! flexVolume=12FlexVolumeSource! cinder=13CinderVolumeSource!
 cephfs=14CephFSVolumeSource! flocker=15FlockerVolumeSource! downwardAPI=16DownwardAPIVolumeSource!
 fc=17FCVolumeSource! azureFile=18AzureFileVolumeSource! configMap=19ConfigMapVolumeSource!
 vsphereVolume=20VsphereVirtualDiskVolumeSource! quobyte=21QuobyteVolumeSource!
 azureDisk=22AzureDiskVolumeSource! photonPersistentDisk=23PhotonPersistentDiskVolumeSource!
 projected=26ProjectedVolumeSource! portworxVolume=24PortworxVolumeSource!
 scaleIO=25ScaleIOVolumeSource! storageos=27StorageOSVolumeSource! csi=28CSIVolumeSource!
 ephemeral=29EphemeralVolumeSource! image=30ImageVolumeSource!
VolumeStatus: image=1ImageVolumeStatus!
VsphereVirtualDiskVolumeSource: volumePath=1! fsType=2 storagePolicyName=3 storagePolicyID=4
WeightedPodAffinityTerm: weight=1i! podAffinityTerm=2PodAffinityTerm
WindowsSecurityContextOptions: gmsaCredentialSpecName=1! gmsaCredentialSpec=2! runAsUserName=3!
 hostProcess=4b!
"""
