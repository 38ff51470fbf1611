"""Users, roles and applications written through the dataset keep identity's rules."""

from __future__ import annotations

from typing import Any

import pytest

from domain.dataset.dataset import Dataset
from foundation import cache_versions, errors
from identity.changes import TOKENS
from identity.context import CallContext
from identity.models import TrustedApplication, User


def _dataset(*, is_admin: bool) -> Dataset:
    values: dict[str, Any] = {"name": {"EN": "Ann"}, "is_admin": is_admin}
    ann, _ = User.objects.update_or_create(login="ann", defaults=values)
    return Dataset(CallContext(user=ann.as_caller()))


@pytest.fixture
def user(db: None) -> User:
    return User.objects.create_user("bob")


def test_only_administrators_make_administrators(user: User) -> None:
    dataset = _dataset(is_admin=False)
    record = dataset.load("Systems.Security.Users", user.id)
    assert record is not None
    with pytest.raises(errors.Forbidden):
        dataset.set(record, "IsAdmin", True)
    dataset.commit()
    assert not User.objects.get(pk=user.id).is_admin
    allowed = _dataset(is_admin=True)
    record = allowed.load("Systems.Security.Users", user.id)
    assert record is not None
    allowed.set(record, "IsAdmin", True)
    allowed.commit()
    assert User.objects.get(pk=user.id).is_admin


def test_others_may_change_what_gives_no_rights(user: User) -> None:
    dataset = _dataset(is_admin=False)
    record = dataset.load("Systems.Security.Users", user.id)
    assert record is not None
    dataset.set(record, "Notes", "left-handed")
    dataset.commit()
    assert User.objects.get(pk=user.id).notes == "left-handed"


@pytest.mark.parametrize("repository", ["Systems.Security.Roles", "Systems.Security.TrustedApplications"])
def test_no_role_is_enough_to_change_roles_and_applications(db: None, repository: str) -> None:
    dataset = _dataset(is_admin=False)
    values = {"Name": "x"} if repository.endswith("Roles") else {"Name": "x", "ApplicationUri": "x"}
    with pytest.raises(errors.Forbidden):
        dataset.create(repository, values, by_client=True)
    assert not dataset.changed()


def test_a_written_user_is_no_longer_known_by_old_tokens(user: User) -> None:
    cache_versions.expire()
    before = cache_versions.current(TOKENS)
    dataset = _dataset(is_admin=True)
    record = dataset.load("Systems.Security.Users", user.id)
    assert record is not None
    dataset.set(record, "Active", False)
    dataset.commit()
    cache_versions.expire()
    assert cache_versions.current(TOKENS) > before


def test_an_application_that_breaks_the_rules_is_refused(db: None) -> None:
    dataset = _dataset(is_admin=True)
    dataset.create(
        "Systems.Security.TrustedApplications",
        {"Name": "Shop", "ApplicationUri": "shop", "SystemUserAllowed": True, "Scope": "read everything"},
        by_client=True,
    )
    with pytest.raises(errors.Refused) as caught:
        dataset.commit()
    assert caught.value.code is errors.APPLICATION_INVALID
    assert "SystemUser" in str(caught.value)
    assert "everything" in str(caught.value)
    assert not TrustedApplication.objects.exists()
