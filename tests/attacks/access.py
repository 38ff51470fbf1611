"""What decides who may do what, as one value; and a person with wide rights who is no administrator."""

from __future__ import annotations

from typing import Any

from foundation import cache_versions
from identity.models import (
    Licence,
    RateLimits,
    RegistrationPolicy,
    RegistrationToken,
    ReservedSeat,
    Role,
    RolePermission,
    RoleUser,
    RowPolicy,
    SigningKey,
    TrustedApplication,
    UsedLogin,
    User,
)
from tests.domain.security.conftest import caller, give_role, person
from tests.support.api import Api, error_of

#: Everything, and all that `*` does not include.
WIDE = dict.fromkeys(("*", "Systems.Security.*", "Systems.Bpm.*", "Systems.Core.*", "Systems.Config.*"), "crud")
RULES, USERS, ROLES = "Systems_Bpm_UserBusinessRules", "Systems_Security_Users", "Systems_Security_Roles"
CURRENCIES = "General_Currencies_Currencies"
_OF_USERS = ("pk", "login", "name", "email", "user_type", "active", "is_admin", "password")
_TABLES: tuple[Any, ...] = (
    Role, RoleUser, RolePermission, RowPolicy, TrustedApplication, Licence, ReservedSeat, RateLimits, UsedLogin,
    SigningKey, RegistrationPolicy, RegistrationToken,
)  # fmt: skip


def digest() -> Any:
    """Everything that decides access, as it is stored."""
    tables = [list(table._default_manager.order_by("pk").values()) for table in _TABLES]
    return [list(User.objects.order_by("pk").values(*_OF_USERS)), *tables]


def attacker(login: str = "mallory") -> Api:
    """Somebody who may do everything that roles can allow."""
    user = person(login)
    give_role(user, WIDE)
    return caller(user)


def rule_body(code: str, repository: str, event: str, *actions: tuple[str, ...], **values: Any) -> dict[str, Any]:
    """A rule as one POST creates it. event: "COMMIT", or "ATTRIBUTECHANGING:Notes" with a parameter."""
    name, _, parameter = event.partition(":")
    return {
        "Code": code,
        "Name": {"EN": code},
        "RepositoryName": repository,
        "IsActive": True,
        "Events": [{"EventType": name, **({"EventParameter": parameter} if parameter else {})}],
        "Actions": [
            {
                "ActionNo": number * 10,
                "ActionType": kind,
                **{f"Parameter{place}Value": value for place, value in enumerate(parameters, 1)},
            }
            for number, (kind, *parameters) in enumerate(actions, 1)
        ],
        **values,
    }


def save_rule(api: Api, *given: Any, **values: Any) -> str:
    """Save it; its guid."""
    answer = api.post(RULES, rule_body(*given, **values))
    assert answer.status_code == 201, answer.content
    cache_versions.expire()  # the test's transaction, when it commits, would do this
    return str(answer.json()["Id"] if "Id" in answer.json() else answer.json()["@odata.id"].partition("(")[2][:-1])


def script(source: str) -> dict[str, str]:
    """The members of a rule that runs a script."""
    return {"ScriptLanguage": "JavaScript", "ScriptText": source}


def refused_as(answer: Any) -> str:
    """The type of the error of an answer; "" where there is none."""
    return str(error_of(answer)["type"]) if answer.status_code >= 400 else ""
