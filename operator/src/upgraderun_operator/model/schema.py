"""From a pydantic model to a structural OpenAPI v3 schema, as a CRD wants it.

Caller: `crds`. Pure. It inlines references, drops null branches and titles, and writes defaults of
objects as `{}`, so that the API server fills in the fields one by one.
"""

from collections.abc import Mapping
from typing import Any, Final

from upgraderun_operator.model.base import ApiModel

_KEPT: Final[tuple[str, ...]] = (
    "type",
    "format",
    "description",
    "default",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "maxProperties",
)


def structural(model: type[ApiModel]) -> dict[str, Any]:
    """Build the schema of a model. Raises TypeError for a shape that no CRD can hold."""
    raw = model.model_json_schema(by_alias=True, mode="validation")
    return _convert(raw, raw.get("$defs", {}))


def _convert(raw: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    node = _resolve(raw, definitions)
    schema: dict[str, Any] = {key: node[key] for key in _KEPT if key in node}
    if "description" in schema:
        schema["description"] = " ".join(schema["description"].split())
    schema.update({key: value for key, value in node.items() if key.startswith("x-kubernetes-")})
    match node.get("type"):
        case "object" if "properties" in node:
            _add_properties(schema, node, definitions)
        case "object":
            schema["additionalProperties"] = _convert(node["additionalProperties"], definitions)
        case "array":
            schema["items"] = _convert(node["items"], definitions)
        case "integer":
            schema["format"] = "int64"
        case "string" | "boolean":
            pass
        case other:
            raise TypeError(f"a CRD can't hold type {other!r}: {node}")
    if schema.get("default", 0) is None:
        del schema["default"]
    if isinstance(schema.get("default"), dict):
        schema["default"] = {}
    return schema


def _add_properties(
    schema: dict[str, Any], node: Mapping[str, Any], definitions: Mapping[str, Any]
) -> None:
    schema["properties"] = {
        name: _convert(prop, definitions) for name, prop in node["properties"].items()
    }
    if node.get("required"):
        schema["required"] = list(node["required"])


def _resolve(raw: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Follow a reference and take the one branch of an optional; what stands beside it wins."""
    node = dict(raw)
    if "anyOf" in node:
        branches = [branch for branch in node.pop("anyOf") if branch.get("type") != "null"]
        if len(branches) != 1:
            raise TypeError(f"a CRD can't hold a choice: {raw}")
        node = {**branches[0], **node}
    if "$ref" in node:
        name = node.pop("$ref").removeprefix("#/$defs/")
        return _resolve({**definitions[name], **node}, definitions)
    return node
