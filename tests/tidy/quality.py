"""The shape of a driver's `quality.yaml`: what it keeps by rule, what not yet, what not at all."""

from pathlib import Path

import pydantic
import yaml

from tests.tidy import files


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", strict=True)


class Grade(_Strict):
    """`done` alone, or in parts: what is done, what is to do until when, what is exempt and why."""

    done: str = ""
    todo: str = ""
    exempt: str = ""
    comment: str = ""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _in_short(cls, value: object) -> object:
        return {"done": "all of it"} if value == "done" else value

    @pydantic.model_validator(mode="after")
    def _says_something(self) -> "Grade":
        if not (self.done or self.todo or self.exempt):
            raise ValueError("a grade is done, todo or exempt")
        return self


class Dangers(_Strict):
    """Of the dangers that were seen on real servers, by their numbers."""

    done: list[int] = []
    todo: str = ""
    exempt: str = ""
    comment: str = ""


class Rules(_Strict):
    model_config = pydantic.ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    health_from_catalogue: Grade
    idempotent_apply: Grade
    unknown_is_not_absent: Grade
    names_derived: Grade
    marks_left: Grade
    no_secret_in_facts: Grade
    conformance_suite: Grade
    contract_with_crds: Grade
    dangers_guarded: Dangers
    real_server_tests: Grade
    removal: Grade
    key_rotation: Grade | None = None
    """Only of who makes keys for others."""


class Quality(_Strict):
    driver: str
    names: list[str]
    """Under which its drivers are known to the catalogue."""
    rules: Rules


def read(path: Path) -> Quality:
    return Quality.model_validate(yaml.safe_load(files.text(path)))
