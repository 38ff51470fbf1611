"""Calls of `Action`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext

from foundation import errors
from scripts.bridge import actions
from scripts.bridge.registry import MAX_ERROR_CHARACTERS, Answer, host_call

if TYPE_CHECKING:
    from scripts.bridge.bridge import Bridge


@host_call("log", reads=True)
def log(bridge: Bridge, kind: str, text: str) -> Answer:
    bridge.messages.add("Error" if kind == "Error" else "Information", text)
    return None


@host_call("cancel")
def cancel(bridge: Bridge, message: str) -> Answer:
    bridge.cancelled = message[:MAX_ERROR_CHARACTERS] or gettext("The script cancelled the operation.")
    raise errors.Refused(errors.SCRIPT_CANCELLED, bridge.cancelled)


@host_call("notify", undone=True)
def notify(bridge: Bridge, user: Any, message: str) -> Answer:
    if bridge.transactions:  # not in rules, whose author has chosen the user
        actions.count_notification(bridge.dataset.context)
    actions.notify(bridge.dataset, bridge.writer.plain(user), message)
    return bridge.changed()


@host_call("http")
def http(bridge: Bridge, method: str, url: str, body: str, is_json: bool, headers: Any) -> Answer:
    trace = bridge.dataset.context.traceparent
    return actions.http(method, url, body, is_json, headers, bridge.deadline, trace)


@host_call("file", undone=True)
def file(bridge: Bridge, document: Any, name: str, data: Any) -> Answer:
    id = document.get("$e") if isinstance(document, dict) else None
    record = actions.attach(bridge.dataset, bridge.handles.record(id), name, data)
    return bridge.with_record({}, record)


@host_call("user", reads=True)
def user(bridge: Bridge) -> Answer:
    return actions.user_of(bridge.dataset.context)


@host_call("session", reads=True)
def session(bridge: Bridge) -> Answer:
    return actions.session_of(bridge.dataset.context)
