"""Models that no CRD could hold are refused when the schema is built, not by a server later."""

import pytest

from upgraderun_operator.model.base import ApiModel, api_name
from upgraderun_operator.model.schema import structural


class Choice(ApiModel):
    """Two shapes for one field."""

    value: int | str


class Ratio(ApiModel):
    """A float."""

    value: float


class Optional(ApiModel):
    """A field that may be absent."""

    value: int | None = None


@pytest.mark.parametrize("model", [Choice, Ratio])
def test_a_shape_that_no_crd_holds_is_refused(model: type[ApiModel]) -> None:
    with pytest.raises(TypeError, match="a CRD can't hold"):
        structural(model)


def test_an_absent_field_is_optional_and_not_nullable() -> None:
    assert {
        "type": "object",
        "description": "A field that may be absent.",
        "properties": {"value": {"type": "integer", "format": "int64"}},
    } == structural(Optional)


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("url", "url"),
        ("api_url", "apiURL"),
        ("pod_uid", "podUID"),
        ("request_ttl_seconds", "requestTTLSeconds"),
        ("ttl_seconds_after_finished", "ttlSecondsAfterFinished"),
        ("presentation_sha256", "presentationSha256"),
        ("ca_bundle", "caBundle"),
    ],
)
def test_fields_are_spelled_as_the_api_spells_them(field: str, expected: str) -> None:
    assert expected == api_name(field)
