"""Affinity rules: which operators run together, and which apart."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from dagkit.api.attributes import Locality


class AffinityType(StrEnum):
    AFFINITY = "AFFINITY"
    ANTI_AFFINITY = "ANTI_AFFINITY"


class AffinityRule(BaseModel):
    """Run the listed operators, or those whose names match, together or apart, within a locality."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    type: AffinityType
    """Whether the operators run together or apart."""
    locality: Locality = Locality.NODE_LOCAL
    relax_locality: bool = Field(default=False, alias="relaxLocality")
    operators: tuple[str, ...] = Field(default=(), alias="operatorsList")
    operator_regex: str | None = Field(default=None, alias="operatorRegex")


class AffinityRulesSet(BaseModel):
    """The affinity rules of an application."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    affinity_rules: tuple[AffinityRule, ...] = Field(default=(), alias="affinityRules")
