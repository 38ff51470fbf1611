"""Form fields and widgets of the domain's own types."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from unfold.widgets import UnfoldAdminTextInputWidget


class ShownTexts(dict[str, str]):
    """Texts by language, for a read-only field."""

    def __str__(self) -> str:
        """The only text, or each text with its language."""
        if len(self) == 1:
            return next(iter(self.values()))
        return " · ".join(f"{language}: {text}" for language, text in self.items()) or "-"


class MultilanguageWidget(forms.MultiWidget):
    """One input for each language of the instance."""

    template_name = "domain/multilanguage.html"

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        self.languages = [code.upper() for code, _ in settings.LANGUAGES]
        widgets: dict[str, forms.Widget | type[forms.Widget]] = {
            code.lower(): UnfoldAdminTextInputWidget({"aria-label": code}) for code in self.languages
        }
        super().__init__(widgets, attrs)

    def decompress(self, value: Any) -> list[str]:
        """The texts in the order of the inputs."""
        texts = value if isinstance(value, dict) else {}
        return [texts.get(code, "") for code in self.languages]


class MultilanguageFormField(forms.MultiValueField):
    """Texts by language, with an input for each language of the instance."""

    widget = MultilanguageWidget

    def __init__(self, **kwargs: Any) -> None:
        for name in ("max_length", "empty_value"):
            kwargs.pop(name, None)
        kwargs["widget"] = MultilanguageWidget()
        kwargs["require_all_fields"] = False
        self.languages = [code.upper() for code, _ in settings.LANGUAGES]
        fields = [forms.CharField(required=False) for _ in self.languages]
        super().__init__(fields, **kwargs)

    def compress(self, data_list: list[str]) -> dict[str, str]:
        """{"EN": …}; empty texts are left out."""
        return {code: text for code, text in zip(self.languages, data_list or (), strict=False) if text}

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compares texts, not their JSON."""
        texts = initial if isinstance(initial, dict) else {}
        return [texts.get(code, "") for code in self.languages] != list(data or [])
