"""A stored answer to a write is shown to nobody who has lost the right to it.

Who: somebody whose role was taken away or narrowed, or a token with fewer scopes. What: repeat an earlier write with
its idempotency key. What prevents it: domain.dataset.transactions.stored_responses.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from foundation import cache_versions
from identity.models import Role, RolePermission, RowPolicy, User
from tests.attacks.access import CURRENCIES
from tests.domain.security.conftest import caller, give_role, person
from tests.support.api import Api, error_of, service_api

KEY = {"Idempotency_Key": "once", "Prefer": "return=representation"}
SECRET = {"CurrencySign": "XXA", "Name": "of interest"}
NAME = "General.Currencies.Currencies"


@pytest.fixture
def mallory(demo: None) -> User:
    """Somebody who may write currencies."""
    user = person("mallory")
    give_role(user, {NAME: "crud"})
    return user


def take_the_role(role: Role) -> None:
    Role.objects.filter(pk=role.pk).update(is_active=False)


def narrow_the_role(role: Role) -> None:
    RowPolicy.objects.create(role=role, repository=NAME, filter="Name eq 'other'")


def take_the_permission(role: Role) -> None:
    RolePermission.objects.filter(role=role).update(can_read=False)


@pytest.mark.parametrize("change", [take_the_role, narrow_the_role, take_the_permission])
def test_an_answer_is_withheld_after_its_reader_s_rights_have_changed(
    mallory: User, change: Callable[[Role], None]
) -> None:
    api = caller(mallory)
    assert api.post(CURRENCIES, SECRET, **KEY).status_code == 201
    assert api.post(CURRENCIES, SECRET, **KEY).headers["Idempotent-Replayed"] == "true"
    change(Role.objects.get(role_users__user=mallory))
    cache_versions.bump("permissions")
    cache_versions.expire()  # the test's transaction, when it commits, would do this
    answer = api.post(CURRENCIES, SECRET, **KEY)
    assert (answer.status_code, error_of(answer)["type"]) == (403, "IdempotentAnswerWithheld")
    assert b"of interest" not in answer.content
    # It was not executed again, either.
    assert service_api(Client()).get(f"{CURRENCIES}/$count?$filter=CurrencySign eq 'XXA'").content == b"1"


def test_a_token_without_the_scopes_of_the_first_one_gets_no_answer(mallory: User) -> None:
    assert caller(mallory).post(CURRENCIES, SECRET, **KEY).status_code == 201
    for scopes, lacking in (("exec", "read"), ("read exec", "update"), ("read update", "exec")):
        answer = caller(mallory, scopes=scopes).post(CURRENCIES, SECRET, **KEY)
        assert (answer.status_code, error_of(answer)["type"]) == (403, "ScopeMissing")
        assert (f"'{lacking}'" in error_of(answer)["message"], b"of interest" in answer.content) == (True, False)
    assert caller(mallory).post(CURRENCIES, SECRET, **KEY).headers["Idempotent-Replayed"] == "true"


def test_rights_that_others_get_change_nothing(mallory: User, administrator: Api) -> None:
    api = caller(mallory)
    assert api.post(CURRENCIES, SECRET, **KEY).status_code == 201
    give_role(person("anna"), {"*": "crud"})
    cache_versions.bump("permissions")
    cache_versions.expire()
    assert api.post(CURRENCIES, SECRET, **KEY).headers["Idempotent-Replayed"] == "true"
