"""YAML of manifests, read by libyaml: the schemas of our kinds take seconds in pure Python."""

from collections.abc import Iterator
from typing import Any

import yaml


def read(text: str) -> Any:
    """The one document of a text."""
    return yaml.load(text, yaml.CSafeLoader)


def read_all(text: str) -> Iterator[Any]:
    """Its documents, without empty ones."""
    return (found for found in yaml.load_all(text, yaml.CSafeLoader) if found)
