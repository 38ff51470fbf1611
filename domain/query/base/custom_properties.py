"""The one place where the engine asks for custom properties (spec 08, 8.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.model import custom_properties
from domain.model.custom_properties import STAMP, Definition
from domain.model.repository import Repository


def definitions_of(repository: Repository[Any]) -> Mapping[str, Definition]:
    """The custom properties of a repository by API name (`CustomProperty_x`)."""
    return custom_properties.definitions(repository.name)


__all__ = ["STAMP", "definitions_of"]
