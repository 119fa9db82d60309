"""The policies: generated from the flows (`grants`), compared with what is stored, and linted."""

from collections.abc import Sequence
from typing import Any

from drivers.openbao import grants
from drivers.openbao.client import Bao
from drivers.openbao.parts import DEADLINE, Part
from fleetd.kube import facts
from fleetd.vocabulary import Done, Outcome, Step, make_step
from topology.resource import Facts, Resource

WRITE = "write-policy"


class Policies(Part):
    async def look(self, want: Resource, seen: dict[str, Any]) -> dict[str, Any]:
        del seen
        if want.absent:
            return {}  # they go with OpenBao itself; in one of somebody else's they stay
        asked = self._wanted(want)

        def read(bao: Bao) -> dict[str, str]:
            there = set(bao.keys("sys/policies/acl"))
            found: dict[str, str] = {}
            for policy in asked:
                if policy.name in there:
                    stored = bao.read(f"sys/policies/acl/{policy.name}") or {}
                    found[policy.name] = str(stored.get("policy", ""))
            return found

        stored = await self.ask(want, read)
        if not stored:
            return {}
        missing = [one.name for one in asked if one.name not in stored]
        differing = [one.name for one in asked if stored.get(one.name, one.text) != one.text]
        bad = [said for one in asked for said in grants.lint(one, self.mount(want))]
        bad += grants.bad_paths(self.topology(), want.region)
        return {
            "policies": {"missing": len(missing), "differing": len(differing), "bad": len(bad)},
            "missing": missing,
            "differing": differing,
            "lint": bad[: facts.DIFFERENCES_MAX],
            # What is wanted follows from the whole fleet: a new cluster must change the facts.
            "wanted": facts.digest({one.name: one.text for one in asked}),
        }

    def propose(self, want: Resource, seen: Facts) -> Sequence[Step]:
        steps: list[Step] = []
        for policy in self._wanted(want):
            if not seen or policy.name in seen["missing"]:
                why = f"write the policy {policy.name}"
            elif policy.name in seen["differing"]:
                why = f"write the policy {policy.name} again: somebody or the flows changed it"
            else:
                continue
            args = {"name": policy.name, "policy": policy.text}
            steps.append(make_step(want, WRITE, args, why=why, deadline=DEADLINE))
        return steps

    async def act(self, want: Resource, step: Step) -> Outcome:
        name, text = str(step.args["name"]), str(step.args["policy"])
        await self.ask(want, lambda bao: bao.write(f"sys/policies/acl/{name}", {"policy": text}))
        return Done()

    def _wanted(self, want: Resource) -> list[grants.Policy]:
        return grants.of_region(self.topology(), want.region, self.mount(want))
