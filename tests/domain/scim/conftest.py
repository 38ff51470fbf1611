"""A directory: the client of an application that an administrator has allowed to provision."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from identity.applications import secret_generate
from identity.models import TrustedApplication, User
from tests.identity.conftest import browser, demo, fresh_process, http  # noqa: F401
from tests.identity.flows import service_token, token_request

MEDIA_TYPE = "application/scim+json"


class Directory(APIClient):
    """Speaks SCIM with a token."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The answer to a request below /scim/v2."""
        kwargs: dict[str, Any] = {} if body is None else {"data": body, "content_type": MEDIA_TYPE}
        if isinstance(body, dict):
            kwargs = {"data": body, "format": "json"}
        return getattr(self, method)(f"/scim/v2{path}", headers=headers, **kwargs)

    def user(self, login: str, **more: Any) -> dict[str, Any]:
        """A new user."""
        answer = self.send("post", "/Users", {"userName": login, **more})
        assert answer.status_code == 201, answer.content
        result: dict[str, Any] = answer.json()
        return result

    def patch_user(self, user: str, *operations: dict[str, Any], **headers: str) -> Any:
        return self.send("patch", f"/Users/{user}", {"Operations": list(operations)}, **headers)


def directory_token(*, scope: str = "scim", is_admin: bool = True) -> str:
    """The token of a new service application."""
    user = User.objects.create_user(f"directory-{scope}-{is_admin}", user_type="SystemUserNoLogin", is_admin=is_admin)
    secret, digest = secret_generate()
    application = TrustedApplication.objects.create(
        application_uri=user.login,
        name="Directory",
        application_secret_hash=digest,
        system_user_allowed=True,
        system_user=user,
        scope=scope,
    )
    form = {"grant_type": "client_credentials", "client_id": application.application_uri, "client_secret": secret}
    answer = token_request(APIClient(), **form)
    assert answer.status_code == 200, answer.content
    return str(answer.json()["access_token"])


@pytest.fixture
def directory(demo: None) -> Directory:  # noqa: F811
    """The company's directory."""
    return Directory(directory_token())


__all__ = ["Directory", "directory_token", "service_token"]
