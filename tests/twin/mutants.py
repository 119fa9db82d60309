"""
Planted bugs of a whole region: what each is, what it is tried by, and what must catch it.

A harness that catches none of them proves nothing. The bugs themselves are in `mutants_kube`,
`mutants_drivers` and `mutants_engine`, two are the toy world's; here is the list.
`python -m tests.twin.mutants` prints it as the table in `tests/twin/README.md`.
"""

import sys
from dataclasses import dataclass

from tests.crash import mutants as toy
from tests.twin import mutants_drivers as drivers
from tests.twin import mutants_engine as engine
from tests.twin import mutants_kube as kube
from tests.twin import ordeals, trials
from tests.twin.trials import Patch, Trial

STALE = "stale state"
HALF = "intermediate state"
UNSEEN = "unobserved state"
UNWINDING = "unwinding"
SECRET = "secret"
GUARD = "guard"
KINDS = (HALF, STALE, UNSEEN, UNWINDING, SECRET, GUARD)


@dataclass(frozen=True)
class Mutant:
    name: str
    kind: str
    patch: Patch
    trial: Trial
    caught_by: str
    """The invariants (I) and dangers (D) that the trial finds broken, and no others: a bug that is
    caught for another reason than its own proves nothing of the check that was meant."""

    @property
    def wrong(self) -> str:
        """What is wrong with it, in a sentence."""
        return str(self.patch.__doc__).strip()


MUTANTS = (
    # Intermediate state: what a daemon leaves behind when it dies.
    Mutant("progress in memory", HALF, kube.progress_in_memory, trials.RESTART, "I6 I7"),
    Mutant("names made up", HALF, drivers.a_name_at_every_start, ordeals.OPENED, "I10"),
    Mutant("a stamp is a secret", HALF, drivers.a_stamp_is_a_secret, ordeals.HALF_MADE, "I5 I6"),
    Mutant("a claim is the keys", HALF, drivers.a_claim_is_the_keys, ordeals.ONLY_CLAIMED, "I6"),
    Mutant("intent after the deed", HALF, engine.intent_after_the_deed, ordeals.UNANNOUNCED, "I15"),
    Mutant("outcomes not written", HALF, engine.outcomes_are_not_written, ordeals.DELETED, "I15"),
    Mutant("lost steps stay open", HALF, toy.lost_steps_stay_open, ordeals.CUT_OFF, "I15"),
    Mutant("failures are final", HALF, engine.failures_are_final, ordeals.STORMY, "I6"),
    # Stale state: decisions on what was so.
    Mutant("back in time", STALE, kube.goes_back_in_time, ordeals.LAGGING, "I13"),
    Mutant("410 is skipped", STALE, kube.expired_is_skipped, ordeals.FORGOTTEN, "I8"),
    Mutant("deletions ignored", STALE, kube.deletions_are_ignored, ordeals.DELETED, "I6 I8"),
    Mutant("first page is all", STALE, kube.first_page_is_all, ordeals.PAGED, "I6 I7"),
    Mutant("lost cache speaks on", STALE, kube.a_lost_cache_speaks_on, ordeals.AWAY, "I12"),
    Mutant("own writes not noted", STALE, kube.own_writes_are_not_noted, ordeals.UPGRADED, "I9"),
    Mutant("generation ignored", STALE, kube.generations_are_ignored, ordeals.UNHEARD, "I12"),
    Mutant("unknown is absent", STALE, kube.unknown_is_absent, trials.seed(4), "I5"),
    Mutant("old look decides", STALE, engine.decided_on_the_old_look, ordeals.OPENED, "I9"),
    Mutant("compared to the letter", STALE, kube.compared_to_the_letter, trials.RESTART, "I6 I7"),
    Mutant("kubeconfig for ever", STALE, drivers.kubeconfigs_are_for_ever, ordeals.EXPIRING, "I6"),
    Mutant("good until its end", STALE, drivers.good_until_its_end, ordeals.REVOKED, "I6"),
    # Unobserved state: what happened while nobody looked.
    Mutant("silent watch", UNSEEN, kube.silence_goes_unnoticed, ordeals.UNSEEN, "I8"),
    Mutant(
        "written is written", UNSEEN, kube.written_once_is_written, ordeals.DELETED_TWICE, "I6 I8"
    ),
    Mutant("looked at once", UNSEEN, engine.looked_at_once, ordeals.SEALED, "I6"),
    Mutant("one member unsealed", UNSEEN, drivers.only_the_first_is_unsealed, ordeals.SEALED, "I6"),
    # Unwinding: what was put aside, or is to go.
    Mutant(
        "quarantine for ever", UNWINDING, drivers.quarantine_is_for_ever, ordeals.HANGING, "I6 I10"
    ),
    Mutant("unnamed goes", UNWINDING, engine.what_is_not_named_goes, ordeals.UNNAMED, "I2 I8"),
    Mutant(
        "claimed server removed",
        UNWINDING,
        drivers.claimed_servers_are_removed,
        ordeals.RETIRED,
        "I2 I10",
    ),
    Mutant(
        "lost keys start over", UNWINDING, drivers.lost_keys_start_over, ordeals.KEYS_LOST, "I2"
    ),
    # Secrets.
    Mutant("keys in memory", SECRET, drivers.keys_stay_in_memory, ordeals.OPENED, "I6"),
    Mutant(
        "passwords at every start",
        SECRET,
        drivers.secrets_are_made_at_start,
        trials.RESTART,
        "I5",
    ),
    Mutant("token at every start", SECRET, drivers.a_token_at_every_look, trials.RESTART, "I7"),
    Mutant("secret in a step", SECRET, drivers.secrets_travel_in_steps, ordeals.UNSECRET, "I5"),
    Mutant("any audience", SECRET, drivers.roles_without_audience, ordeals.OPENED, "D15 I6"),
    Mutant(
        "policy without metadata", SECRET, drivers.policies_without_metadata, ordeals.REPUSHED, "I6"
    ),
    # Guards: what the far side must be kept from.
    Mutant("one machine twice", GUARD, drivers.one_machine_twice, ordeals.ENROLLED_BY_OTHERS, "D2"),
    Mutant("maintenance left out", GUARD, drivers.maintenance_left_out, ordeals.GROWN, "D10"),
    Mutant("fights without end", GUARD, kube.fights_without_end, ordeals.FOUGHT_OVER, "I14"),
    Mutant("asks again at once", GUARD, kube.sent_again_at_once, ordeals.BUSY, "I14"),
    Mutant("needs are ignored", GUARD, engine.needs_are_ignored, ordeals.OPENED, "I12"),
    Mutant("windows are ignored", GUARD, engine.windows_are_ignored, ordeals.NOON, "I11"),
    Mutant("takes nothing down", GUARD, drivers.upgrades_take_nothing_down, ordeals.NOON, "I11"),
    Mutant("down is not counted", GUARD, toy.what_is_down_is_not_counted, ordeals.DOWN, "I11"),
)


def table() -> str:
    """As it stands in the README."""
    lines = [
        "| Planted bug | Class | What is wrong | Where | Tried by | Caught by |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.name} | {one.kind} | {one.wrong} | {one.trial.moment} | {one.trial.name} "
        f"| {one.caught_by} |"
        for one in MUTANTS
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table())
