"""What all kinds share: the frozen base model, the spelling of names, bounded text and numbers.

Callers: the other modules of `model/` only. No kind is defined here.
"""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from upgraderun_protocol.urls import URL_MAX

_UPPER_WORDS: Final = frozenset({"url", "uid", "ttl"})

SHA256_PATTERN: Final = "^[0-9a-f]{64}$"
COMMIT_PATTERN: Final = "^[0-9a-f]{40}$"


def api_name(field: str) -> str:
    """Spell a field as the API does: `pod_uid` is `podUID`, `url` stays `url`."""
    first, *rest = field.split("_")
    return first + "".join(w.upper() if w in _UPPER_WORDS else w.capitalize() for w in rest)


class ApiModel(BaseModel):
    """A part of an object, as the API server stores it.

    Frozen, so that it can be handed on as a value. Unknown fields are dropped on reading, as the
    API server prunes them; `objects.strict` refuses them in manifests that we ship.
    """

    model_config = ConfigDict(
        alias_generator=api_name,
        populate_by_name=True,
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    def to_json(self) -> dict[str, Any]:
        """Write the form that the API server stores; absent fields are left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


Name = Annotated[str, Field(min_length=1, max_length=253)]
"""A Kubernetes object name."""

Uid = Annotated[str, Field(min_length=1, max_length=64)]
Url = Annotated[str, Field(min_length=1, max_length=2048)]
RepositoryText = Annotated[str, Field(min_length=1, max_length=URL_MAX)]
"""A repository URL as a user spells it; `policy.resolve` normalises and judges it."""

Sha256Text = Annotated[str, Field(max_length=64, pattern=SHA256_PATTERN)]
CommitText = Annotated[str, Field(max_length=40, pattern=COMMIT_PATTERN)]
Message = Annotated[str, Field(max_length=1024)]
"""What a person reads in a condition or wait (security.md §4)."""

Reason = Annotated[str, Field(min_length=1, max_length=64)]
PackageName = Annotated[str, Field(min_length=1, max_length=214)]
PackageVersion = Annotated[str, Field(min_length=1, max_length=128)]
UserName = Annotated[str, Field(min_length=1, max_length=253)]
Timestamp = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"})]
"""RFC 3339, UTC. Kept as text: it is copied and shown, never the base of a verdict but stamps."""

Count = Annotated[int, Field(ge=0)]
