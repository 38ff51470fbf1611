"""Forms with a stored secret that is never shown, and kept if the field is left empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


def secret_field(label: str | _StrPromise, help_text: str | _StrPromise) -> forms.CharField:
    """The field of the secret, always empty when it is shown."""
    widget = forms.PasswordInput(attrs={"autocomplete": "off"})
    return forms.CharField(label=label, help_text=help_text, required=False, max_length=500, widget=widget)


class StoredSecretForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form whose empty secret keeps the stored one, unless its destination is changed.

    Otherwise an editor who does not know the secret could send it to another server.

    secret   the field of the secret
    sent_to  the fields of its destination
    """

    secret: ClassVar[str]
    sent_to: ClassVar[tuple[str, ...]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk and getattr(self.instance, self.secret):
            field = self.fields[self.secret]
            field.help_text = f"{field.help_text} {_('Empty: the stored one stays.')}"

    def _post_clean(self) -> None:
        """As Django's; a secret that was entered is asked for again with every refusal, for no page shows it."""
        super()._post_clean()  # type: ignore[misc]
        entered = self.data.get(self.add_prefix(self.secret))
        if self.errors and entered and self.secret not in self.errors:
            self.add_error(self.secret, _("Enter it again: a secret is not sent back to the page."))

    def clean(self) -> dict[str, Any]:
        """The values, with the stored secret if none is entered."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        stored = getattr(self.instance, self.secret) if self.instance.pk else None
        if values.get(self.secret) or not stored:
            return values
        if any(name in values and values[name] != getattr(self.instance, name) for name in self.sent_to):
            self.add_error(self.secret, _("Enter it again: it would be sent to other servers."))
        values[self.secret] = stored
        return values
