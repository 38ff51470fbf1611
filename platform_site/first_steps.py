"""The card of the home page with the first steps for the administrator of a new instance."""

from __future__ import annotations

from functools import lru_cache

from django.contrib.auth.hashers import check_password
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from domain.demo.configuration import ACTIVE
from domain.entities.systems_bpm import UserBusinessRule
from identity.applications import PAGE_APPLICATIONS
from identity.demo import DEMO_APPLICATIONS, DEMO_LOGINS
from identity.mailed_links import mail_is_configured
from identity.models import RoleUser, TrustedApplication, User
from platform_site.cards import GOOD, WARNING, Card, Line, number_text


def first_steps_card(request: HttpRequest) -> Card | None:
    """The steps, done and open; None when all are done. Runs four queries, for any size of the tables."""
    steps = (
        (gettext("Change the password of admin"), _password_changed(), reverse("identity:password")),
        (
            gettext("Register an application of your own"),
            TrustedApplication.objects.exclude(application_uri__in={*DEMO_APPLICATIONS, *PAGE_APPLICATIONS}).exists(),
            reverse("admin:identity_trustedapplication_add"),
        ),
        (
            gettext("Invite a colleague and give a role"),
            RoleUser.objects.exclude(user__login__in=DEMO_LOGINS).exists(),
            reverse("admin:identity_user_add"),
        ),
        (
            gettext("Switch on a business rule"),
            UserBusinessRule.objects.filter(is_active=True).exclude(code__in=ACTIVE).exists(),
            reverse("admin:domain_userbusinessrule_changelist"),
        ),
        (gettext("Let the instance send mail (EMAIL_URL)"), mail_is_configured(), ""),
    )
    done = sum(is_done for _, is_done, _ in steps)
    if done == len(steps):
        return None
    return Card(
        "first-steps",
        gettext("First steps"),
        "",
        WARNING,
        figure=gettext("%(count)s of %(all)s") % {"count": number_text(done), "all": number_text(len(steps))},
        said=gettext("done"),
        lines=tuple(
            Line(text, gettext("done") if is_done else gettext("to do"), GOOD if is_done else WARNING, url)
            for text, is_done, url in steps
        ),
    )


def _password_changed() -> bool:
    stored = User.objects.filter(login="admin").values_list("password", flat=True).first()
    return stored is None or not _is_initial(stored)


@lru_cache(maxsize=8)
def _is_initial(stored: str) -> bool:
    """Whether a stored password is the demo password; cached, since password hashing is slow by design."""
    return check_password("admin", stored)
