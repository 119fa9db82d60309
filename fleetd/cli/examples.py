"""
What each command's `--help` shows as examples, by the words that lead to the command.

The one rule: each line can be typed as it stands, on a region like those in `topology/examples`;
a test parses all of them.
"""

EXAMPLES = {
    "validate": ("fleetctl validate fleet/", "fleetctl validate fleet/ -o json"),
    "render": ("fleetctl render fleet/", "fleetctl render fleet/ -o mermaid"),
    "plan": (
        "fleetctl plan",
        "fleetctl plan fleet/ -o wide",
        "fleetctl plan --offline fleet/",
        "fleetctl plan --region eu-1 --exit-code",
    ),
    "apply": (
        "fleetctl apply fleet/hv-b.yaml --wait",
        "fleetctl apply --plan 4f1c0de5a1b2 --yes",
    ),
    "diff": ("fleetctl diff fleet/", "fleetctl diff fleet/ --against fleet-of-yesterday/"),
    "tree": ("fleetctl tree", "fleetctl tree eu-1 --watch"),
    "get": (
        "fleetctl get servers --region eu-1 --watch",
        "fleetctl get cluster/hv -o yaml",
        "fleetctl get orphans",
    ),
    "describe": ("fleetctl describe cluster hv", "fleetctl describe server/r1-s01 -o wide"),
    "why": ("fleetctl why hypervisors hv", "fleetctl why cloud/prod -o wide"),
    "incidents": ("fleetctl incidents", "fleetctl incidents --region eu-1 -o wide"),
    "events": (
        "fleetctl events --since 2h",
        "fleetctl events --for cluster/hv",
        "fleetctl events -w",
    ),
    "pause": (
        'fleetctl pause cluster hv --reason "network change in rack r2"',
        'fleetctl pause kind server --reason "BMC firmware is being looked at"',
    ),
    "resume": ("fleetctl resume cluster hv", "fleetctl resume kind:server"),
    "approve": ("fleetctl approve 3f2a9c41d0",),
    "reject": ("fleetctl reject 3f2a9c41d0",),
    "retire": ("fleetctl get orphans", "fleetctl retire cluster old"),
    "credentials": ("fleetctl credentials", "fleetctl credentials --region eu-1 -o wide"),
    "rehearse": (
        "fleetctl rehearse fleet/ --seed 4",
        "fleetctl rehearse fleet/ --fault 'at 12m: bmc r1-s01 unreachable for 20m'",
        "fleetctl rehearse fleet/ --from fleet-of-today/ --chaos",
    ),
    "audit list": ("fleetctl audit list /var/lib/fleetd/audit",),
    "audit verify": ("fleetctl audit verify", "fleetctl audit verify copy-of-audit/ -o json"),
    "token new": (
        "fleetctl token new ci --role operator --region eu-1 --into access.toml > ci.token",
    ),
}
