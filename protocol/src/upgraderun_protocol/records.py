"""Frozen dataclasses to JSON and back, strictly: the one decoder of wire messages and records.

Keys are camelCase (`pod_uid` is `podUID`, `clone_url` is `cloneURL`). Reading refuses unknown
and missing fields, wrong types, and lists or strings beyond the bound that a field declares with
`bounded(...)`. Callers: both sides of the runner API, artifacts of runner and operator.
"""

import dataclasses
import enum
import json
import types
import typing
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from upgraderun_protocol.canonical import canonical_json
from upgraderun_protocol.limits import JSON_DEPTH_MAX

T = TypeVar("T")
_UPPER: Final = {"uid": "UID", "url": "URL"}
_DEFAULT_STRING_MAX: Final = 65_536
_DEFAULT_ITEMS_MAX: Final = 20_000


class RecordError(ValueError):
    """The bytes or the value aren't such a record; the message says where and what was expected."""


def bounded(
    *,
    string_max: int = _DEFAULT_STRING_MAX,
    items_max: int = _DEFAULT_ITEMS_MAX,
    default: Any = dataclasses.MISSING,
    shown: bool = True,
) -> Any:
    """Declare a field's bounds: characters of each string in it, items of each list or map.

    A secret isn't `shown` by `repr`.
    """
    metadata = {"string_max": string_max, "items_max": items_max}
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata=metadata, repr=shown)
    return dataclasses.field(default=default, metadata=metadata)


def json_key(name: str) -> str:
    """Spell a field name as JSON does: `clone_url` is `cloneURL`."""
    first, *rest = name.split("_")
    return first + "".join(_UPPER.get(part, part.capitalize()) for part in rest)


def to_json(value: Any) -> Any:
    """Turn a record into plain JSON values. Fields that are None are left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {json_key(name): to_json(item) for name, item in pairs if item is not None}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list | frozenset):
        items = sorted(value) if isinstance(value, frozenset) else value
        return [to_json(item) for item in items]
    return value


def to_bytes(value: Any) -> bytes:
    """Canonical JSON of a record: what is stored and hashed."""
    return canonical_json(to_json(value))


def from_bytes(kind: type[T], data: bytes) -> T:
    """Read a record from bytes: duplicate keys, deep nesting, NaN and unknown fields are refused."""
    return from_json(kind, parse_json(data))


def parse_json(data: bytes) -> Any:
    """Parse hostile JSON: UTF-8, no duplicate keys, no floats, nesting ≤ 16 (security.md H14)."""
    _refuse_deep(data)
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_float=_no_float,
            parse_constant=_no_float,
        )
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise RecordError(f"not JSON: {error}") from error


def _refuse_deep(data: bytes) -> None:
    depth = 0
    inside = escaped = False
    for byte in data:
        if inside:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                inside = False
        elif byte == 0x22:
            inside = True
        elif byte in b"[{":
            depth += 1
            if depth > JSON_DEPTH_MAX:
                raise RecordError(f"nested deeper than {JSON_DEPTH_MAX} levels")
        elif byte in b"]}":
            depth -= 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise RecordError("an object names one key twice")
    return result


def _no_float(text: str) -> Any:
    raise RecordError(f"{text} is no integer")


def from_json(kind: type[T], value: Any, where: str = "$") -> T:
    """Read a record of a dataclass from plain JSON values. Raises RecordError with the place."""
    if not isinstance(value, Mapping):
        raise RecordError(f"{where}: expected an object")
    hints = typing.get_type_hints(kind)
    fields = {json_key(field.name): field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]  # T is a dataclass by contract
    unknown = sorted(set(value) - set(fields))
    if unknown:
        raise RecordError(f"{where}: unknown field {unknown[0][:64]!r}")
    arguments: dict[str, Any] = {}
    for key, field in fields.items():
        if key in value:
            arguments[field.name] = _read(hints[field.name], value[key], f"{where}.{key}", field)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise RecordError(f"{where}: field {key!r} is missing")
    try:
        return kind(**arguments)
    except ValueError as error:
        raise RecordError(f"{where}: {error}") from error


def _read(hint: Any, value: Any, where: str, field: "dataclasses.Field[Any]") -> Any:
    hint = getattr(hint, "__supertype__", hint)
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _read_optional(hint, value, where, field)
    if origin is tuple:
        return _read_list(typing.get_args(hint)[0], value, where, field)
    if origin is not None and issubclass(origin, Mapping):
        return _read_map(typing.get_args(hint)[1], value, where, field)
    if dataclasses.is_dataclass(hint):
        return from_json(typing.cast("type[Any]", hint), value, where)
    return _read_scalar(hint, value, where, field)


def _read_optional(hint: Any, value: Any, where: str, field: "dataclasses.Field[Any]") -> Any:
    inner = [argument for argument in typing.get_args(hint) if argument is not type(None)]
    assert len(inner) == 1, f"{where}: only Optional unions are records"
    return None if value is None else _read(inner[0], value, where, field)


def _items_max(field: "dataclasses.Field[Any]") -> int:
    return int(field.metadata.get("items_max", _DEFAULT_ITEMS_MAX))


def _read_list(hint: Any, value: Any, where: str, field: "dataclasses.Field[Any]") -> Any:
    if not isinstance(value, list | tuple):
        raise RecordError(f"{where}: expected a list")
    if len(value) > _items_max(field):
        raise RecordError(f"{where}: more than {_items_max(field)} items")
    return tuple(_read(hint, item, f"{where}[{index}]", field) for index, item in enumerate(value))


def _read_map(hint: Any, value: Any, where: str, field: "dataclasses.Field[Any]") -> Any:
    if not isinstance(value, Mapping):
        raise RecordError(f"{where}: expected an object")
    if len(value) > _items_max(field):
        raise RecordError(f"{where}: more than {_items_max(field)} keys")
    return {key: _read(hint, item, f"{where}.{key[:64]}", field) for key, item in value.items()}


def _read_scalar(hint: Any, value: Any, where: str, field: "dataclasses.Field[Any]") -> Any:
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        try:
            return hint(value)
        except ValueError as error:
            allowed = ", ".join(str(member.value) for member in hint)
            raise RecordError(f"{where}: expected one of {allowed}") from error
    if hint is Any or hint is object:
        return value
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise RecordError(f"{where}: expected {hint.__name__}")
    limit = int(field.metadata.get("string_max", _DEFAULT_STRING_MAX))
    if isinstance(value, str) and len(value) > limit:
        raise RecordError(f"{where}: longer than {limit} characters")
    return value
