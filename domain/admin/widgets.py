"""Form fields and widgets for multilanguage texts, allowed values and pictures."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from unfold.widgets import INPUT_CLASSES, UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from domain.model.custom_values import MAX_PICTURE_BYTES, picture_type


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


class DependentSelect(UnfoldAdminSelectWidget):  # type: ignore[misc]
    """A select of allowed values, which custom_values.js filters by the value of the parent field.

    ids       value → id of the allowed value
    parents   value → id of the parent's value that allows it; other values are always allowed
    """

    def __init__(self, *, ids: Mapping[str, str], parents: Mapping[str, str], parent_field: str = "") -> None:
        super().__init__({"data-parent-field": parent_field} if parent_field else None)
        self._ids, self._parents = ids, parents

    class Media:
        js = ("domain/custom_values.js",)

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """An option with its id and that of its parent's value."""
        option: dict[str, Any] = super().create_option(name, value, *args, **kwargs)
        for attribute, known in (("data-value-id", self._ids), ("data-parent-id", self._parents)):
            if value in known:
                option["attrs"][attribute] = known[value]
        return option


class PictureInput(forms.ClearableFileInput):
    """The stored picture, a file that replaces it, and a box that removes it."""

    def __init__(self) -> None:
        super().__init__({"accept": "image/png,image/jpeg,image/gif,image/webp", "class": " ".join(INPUT_CLASSES)})

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Embeds the picture in the page as data, since it has no URL."""
        stored = value if isinstance(value, str) else ""
        kind = picture_type(_bytes(stored)) if stored else None
        # The theme's script writes the file's name into a text input three levels up: hidden, as browsers show it.
        html = format_html(
            '<span><input type="text" hidden disabled><span><span>{}</span></span></span>',
            forms.FileInput.render(self, name, None, attrs, renderer),
        )
        if kind is None:
            return html
        return format_html(
            '<img class="custom-picture" src="data:{};base64,{}" alt="{}">{}'
            '<label><input type="checkbox" name="{}"> {}</label>',
            kind, stored, gettext("a picture"), html, self.clear_checkbox_name(name), gettext("Remove the picture"),
        )  # fmt: skip


class PictureField(forms.FileField):
    """A picture as base64 text; False when it is removed."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(widget=PictureInput(), **kwargs)

    def clean(self, data: Any, initial: Any = None) -> Any:
        """The base64 text of an uploaded picture, else the stored text. Raises ValidationError for another file."""
        cleaned = super().clean(data, initial)
        if not hasattr(cleaned, "read"):
            return cleaned
        raw = cleaned.read(MAX_PICTURE_BYTES + 1)
        if len(raw) > MAX_PICTURE_BYTES or picture_type(raw) is None:
            raise ValidationError(gettext("A PNG, JPEG, GIF or WebP picture of at most 1 MB is needed here."))
        return base64.b64encode(raw).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except binascii.Error:
        return b""
