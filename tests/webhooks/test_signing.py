"""Signatures as receivers check them (Standard Webhooks 1.0)."""

from __future__ import annotations

import time

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from webhooks.authentication import authentication_schemes
from webhooks.lease import Lease
from webhooks.send import sent_headers

SCHEME = authentication_schemes["StandardWebhooks"]
new_secret = SCHEME.new_secret
BODY = '{"name": "Стол \\" \\n"}'.encode()


def lease(*secrets: str) -> Lease:
    return Lease("0190-id", "token", "hook", "HOOK", "h:80", "http://h/", (), BODY, 10, 0, 1, secrets=secrets)


def test_the_library_of_the_standard_verifies_it() -> None:
    secret = new_secret()
    headers = dict(sent_headers(lease(secret), timestamp=int(time.time())))
    assert Webhook(secret).verify(BODY, headers) == {"name": 'Стол " \n'}


def test_during_a_rotation_both_secrets_verify() -> None:
    new, old = new_secret(), new_secret()
    headers = dict(sent_headers(lease(new, old), timestamp=int(time.time())))
    assert headers["webhook-signature"].count("v1,") == 2
    for secret in (new, old):
        Webhook(secret).verify(BODY, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(BODY, headers)


def test_a_changed_body_does_not_verify() -> None:
    secret = new_secret()
    headers = dict(sent_headers(lease(secret), timestamp=int(time.time())))
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(BODY + b" ", headers)


def test_without_a_secret_there_is_no_signature() -> None:
    assert "webhook-signature" not in dict(sent_headers(lease(), timestamp=1))


def test_the_vector_of_the_standard() -> None:
    ((name, signature),) = SCHEME.headers(
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
        body=b'{"test": 2432232314}',
    )
    assert name == "webhook-signature"
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("secret", ["whsec_short", "whsec_", "not base64!", "whsec_QUJD"])
def test_a_secret_that_is_none_is_refused(secret: str) -> None:
    with pytest.raises(ValueError, match="signing secret"):
        SCHEME.headers([secret], message_id="msg_1", timestamp=0, body=b"")
