"""manage.py register_app"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from identity.applications import application_warnings, check_application, secret_generate
from identity.management.support import PlatformCommand, user_get
from identity.models import TrustedApplication


class Command(PlatformCommand):
    """Registers a trusted application: for scripts, and before the first login."""

    help = "Register a trusted application; prints its secret, once."
    example = "manage.py register_app Billing --service --system-user service --scope 'read update'"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("uri", help="ApplicationUri, which is the client_id")
        parser.add_argument("--name", help="for people; default: the uri")
        parser.add_argument("--public", action="store_true", help="has no secret (single-page and mobile apps)")
        parser.add_argument("--service", action="store_true", help="may use client_credentials; needs --system-user")
        parser.add_argument("--system-user", metavar="LOGIN")
        parser.add_argument("--login-url", action="append", default=[], help="redirect URI; may be repeated")
        parser.add_argument("--logout-url", action="append", default=[], help="post-logout redirect URI")
        parser.add_argument("--front-channel-logout-url", default="", help="loaded by the browser at sign-out")
        parser.add_argument("--back-channel-logout-url", default="", help="told by the worker at sign-out")
        parser.add_argument("--external", action="store_true", help="external users may sign in, too")
        parser.add_argument("--scope", default="openid profile read")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        application = TrustedApplication(
            application_uri=options["uri"],
            name=options["name"] or options["uri"],
            client_type="Public" if options["public"] else "Confidential",
            impersonate_as_internal_user_allowed=bool(options["login_url"]),
            impersonate_as_community_user_allowed=bool(options["login_url"]) and options["external"],
            impersonate_login_url=",".join(options["login_url"]),
            impersonate_logout_url=",".join(options["logout_url"]),
            front_channel_logout_url=options["front_channel_logout_url"],
            back_channel_logout_url=options["back_channel_logout_url"],
            system_user_allowed=options["service"],
            system_user=user_get(options["system_user"]) if options["system_user"] else None,
            scope=options["scope"],
        )
        secret = None
        if not application.is_public:
            secret, application.application_secret_hash = secret_generate()
        try:
            application.full_clean()
            check_application(application)
        except ValidationError as exc:
            problems = "; ".join(f"{field}: {' '.join(texts)}" for field, texts in exc.message_dict.items())
            raise CommandError(problems) from exc
        application.save()
        for warning in application_warnings(application, has_secret=secret is not None):
            self.stderr.write(f"warning: {warning}")
        result = {"client_id": application.application_uri, "client_secret": secret}
        shown = f"; secret, shown only now: {secret}" if secret else ""
        self.print_result(result, f"Registered {application.application_uri}{shown}", as_json=options["as_json"])
