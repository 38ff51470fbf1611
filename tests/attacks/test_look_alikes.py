"""Names that look like another's.

Who: an administrator of users or applications who means harm, a directory, a person whose account elsewhere may have
any name. What: a user or application that nobody can tell from another one in lists, tokens and the audit log. What
prevents it: logins and client ids have no white space at the ends and no invisible characters, and no login is given to
a second user that Unicode takes for the same (identity.logins, foundation.validators).
"""

from __future__ import annotations

from typing import Any

import pytest

from foundation import errors
from identity.models import UsedLogin, User
from tests.support.api import Api, error_of

USERS = "Systems_Security_Users"
APPLICATIONS = "Systems_Security_TrustedApplications"
UNSEEN = [
    "{} ",
    " {}",
    "{}\n",
    "{}\t",
    "\u00a0{}",
    "{}\u200b",
    "{}\u00ad",
    "\ufeff{}",
    "{}\u202e",
    "{}\u2028",
    "{}\x7f",
]
SAME = ["ADMIN", "\uff41dmin", "\uff21\uff24\uff2d\uff29\uff2e", "adm\u2170n", "\u1d43dmin", "\u24d0dmin"]


def user(login: str) -> dict[str, Any]:
    return {"Login": login, "Name": {"EN": "x"}, "UserType": "InternalUser"}


@pytest.mark.parametrize("pattern", UNSEEN)
def test_a_name_with_what_nobody_sees_is_refused_with_the_reason(administrator: Api, pattern: str) -> None:
    name = pattern.format("somebody")
    refused = administrator.post(USERS, user(name))
    assert (refused.status_code, error_of(refused)["target"]) == (400, "Login"), refused.content
    assert "remove it" in error_of(refused)["message"]
    body = {"ApplicationUri": name, "Name": "x", "ClientType": "Confidential"}
    refused = administrator.post(APPLICATIONS, body)
    assert (refused.status_code, error_of(refused)["target"]) == (500, "ApplicationUri"), refused.content
    with pytest.raises(errors.BadRequest):
        User.objects.create_user(name)
    assert not User.objects.filter(login__contains="somebody").exists()


@pytest.mark.parametrize("login", SAME)
def test_a_login_that_unicode_takes_for_another_s_is_refused(administrator: Api, login: str) -> None:
    assert User.objects.filter(login="admin").exists()
    assert error_of(administrator.post(USERS, user(login)))["type"] == "LoginUsed"
    administrator.create(USERS, user("somebody"))
    made = administrator.read(f"{USERS}?$filter=Login eq 'somebody'&$select=Id")["value"][0]["Id"]
    assert error_of(administrator.patch(f"{USERS}({made})", {"Login": login}))["type"] == "LoginUsed"


@pytest.mark.parametrize(
    "first, second", [("\uff5aoe", "zoe"), ("zo\u0065\u0308", "zo\u00eb"), ("stra\u00dfe", "STRASSE")]
)
def test_which_of_two_came_first_makes_no_difference(administrator: Api, first: str, second: str) -> None:
    made = administrator.create(USERS, user(first))
    assert error_of(administrator.post(USERS, user(second)))["type"] == "LoginUsed"
    path = f"{USERS}({made['Id']})"
    assert administrator.patch(path, {"Login": second}).status_code == 204, "the user itself may change the spelling"
    assert administrator.patch(path, {"Login": "another"}).status_code == 204
    assert error_of(administrator.post(USERS, user(first)))["type"] == "LoginUsed"
    assert set(UsedLogin.objects.filter(user_id=made["Id"]).values_list("user_id", flat=True)) == {made["Id"]}


def test_other_scripts_and_other_names_are_free(administrator: Api) -> None:
    for login in ("\u0430dmin", "\u0438\u0432\u0430\u043d", "admin 2", "a/b", "o'neil", "jos\u00e9", "jose"):
        administrator.create(USERS, user(login))
