"""`kubectl explain` says something of every field of every kind."""

from collections.abc import Iterator
from typing import Any

import pytest

from upgraderun_operator.model.crds import definitions

STANDARD = {"metadata"}
"""The API server itself describes these."""


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Every field below a schema with its description."""
    for name, part in schema.get("properties", {}).items():
        yield f"{path}.{name}", part.get("description", "")
        yield from fields(part, f"{path}.{name}")
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from fields(inner, f"{path}[]")


@pytest.mark.parametrize("plural", definitions())
def test_every_field_has_a_description(plural: str) -> None:
    version = definitions()[plural]["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]

    found = dict(fields(schema))

    assert " " in schema["description"]
    assert len(found) > len(STANDARD)
    assert [] == [
        path for path, text in found.items() if path.strip(".") not in STANDARD and not text
    ]


@pytest.mark.parametrize("plural", definitions())
def test_every_description_is_a_sentence(plural: str) -> None:
    version = definitions()[plural]["spec"]["versions"][0]

    texts = [text for _, text in fields(version["schema"]["openAPIV3Schema"]) if text]

    assert [] == [text for text in texts if not text.endswith(".") or not text[0].isupper()]


def test_a_field_without_description_is_found() -> None:
    """Else the tests above could not fail."""
    deep = {"properties": {"a": {"items": {"properties": {"b": {"type": "string"}}}}}}

    assert {".a": "", ".a[].b": ""} == dict(fields(deep))
