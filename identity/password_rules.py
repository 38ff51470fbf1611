"""Validators of new passwords (AUTH_PASSWORD_VALIDATORS)."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.password_validation import UserAttributeSimilarityValidator
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

#: Minimum letters and digits of a password besides the user's data.
_OWN_CHARACTERS = 8
#: Minimum length of compared parts of names and addresses: shorter ones occur in many words.
_SHORTEST_PART = 3


class NotOfTheUserValidator(UserAttributeSimilarityValidator):
    """As Django's; also refuses repetitions of the login, a name or an address, and those with few other characters.

    Django compares the whole password with each part: it accepts "demo-demo-demo" for the login "demo".
    """

    def validate(self, password: str, user: Any = None) -> None:
        """Raises ValidationError."""
        super().validate(password, user)
        for name in self.user_attributes:
            value = getattr(user, name, None)
            if not isinstance(value, str):
                continue
            for part in {value.casefold(), *re.split(r"\W+", value.casefold())}:
                if len(part) >= _SHORTEST_PART and _is_made_of(password.casefold(), part):
                    label = next((each.verbose_name for each in user._meta.fields if each.name == name), _("name"))
                    raise ValidationError(
                        self.get_error_message(), code="password_too_similar", params={"verbose_name": label}
                    )


def _is_made_of(password: str, part: str) -> bool:
    return part in password and len(re.sub(r"[\W_]", "", password.replace(part, ""))) < _OWN_CHARACTERS
