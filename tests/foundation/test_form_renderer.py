"""Inputs rendered without templates are those of Django's templates."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from django import forms
from django.forms.renderers import TemplatesSetting
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from foundation.form_renderer import FormRenderer

_CHOICES = [("", "---"), ("a&b", "A <b>"), (2, 2.5), ("Group >", [("x", gettext_lazy("Yes")), (None, "none")])]
_WIDGETS: dict[str, forms.Widget] = {
    "text": forms.TextInput({"class": "<wide>", "required": True, "disabled": False, "size": 40}),
    "number": forms.NumberInput({"step": "any"}),
    "password": forms.PasswordInput(render_value=True),
    "hidden": forms.HiddenInput(),
    "date": forms.DateInput(),
    "checkbox": forms.CheckboxInput(),
    "textarea": forms.Textarea({"rows": 3, "title": mark_safe("&amp;")}),
    "select": forms.Select({"data-x": 'a"b'}, choices=_CHOICES),
    "multiple": forms.SelectMultiple(choices=_CHOICES),
}


_NUMBERS = st.one_of(st.integers(), st.decimals(allow_nan=False, allow_infinity=False))
_VALUES = st.one_of(st.none(), st.text(max_size=20), _NUMBERS, st.booleans())


def _without_spaces(html: str) -> str:
    return re.sub(r">\s+<", "><", html)


@pytest.mark.parametrize("name", _WIDGETS)
@given(
    value=st.one_of(
        st.none(),
        st.text(max_size=20),
        st.integers(),
        st.decimals(allow_nan=False, allow_infinity=False),
        st.booleans(),
    )
)
def test_a_widget_is_as_a_template_makes_it(name: str, value: Any) -> None:
    widget = _WIDGETS[name]
    made = widget.render("n&me", value, {"id": "id_n"}, renderer=FormRenderer())
    assert _without_spaces(made) == _without_spaces(widget.render("n&me", value, {"id": "id_n"}, TemplatesSetting()))


def test_chosen_options_are_chosen() -> None:
    made = _WIDGETS["select"].render("n", "a&b", renderer=FormRenderer())
    assert '<option value="a&amp;b" selected>A &lt;b&gt;</option>' in made
    assert made.count("selected") == 1
    assert str(Decimal(2)) in made


class _Form(forms.Form):
    amount = forms.DecimalField(label="Amount <net>", help_text="in EUR")


@pytest.mark.parametrize("renderer", [FormRenderer(), TemplatesSetting()], ids=["ours", "django"])
def test_a_label_names_its_input(renderer: TemplatesSetting) -> None:
    label = _Form(renderer=renderer)["amount"].label_tag(attrs={"class": "required"})
    assert label == '<label class="required" for="id_amount">Amount &lt;net&gt;:</label>'
