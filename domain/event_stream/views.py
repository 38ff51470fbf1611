"""GET /api/domain/events: the change stream as Server-Sent Events and as long poll (spec 13, 13.5)."""

from __future__ import annotations

from collections.abc import Iterable

import orjson
from django.http import HttpRequest, HttpResponse
from rest_framework import serializers
from rest_framework.request import Request

from domain.event_stream import feed
from domain.event_stream.asyncapi import asyncapi_tree
from domain.event_stream.cloud_events import OPERATIONS
from domain.event_stream.hub import hub
from domain.event_stream.subscription import (
    STREAM_SECONDS,
    Framing,
    OneAnswer,
    ServerSentEvents,
    StreamFilter,
    Subscription,
)
from domain.model.naming import near
from domain.model.registry import repositories
from domain.odata.http.exceptions import failure_response
from domain.odata.http.views import http_response, lower_headers
from domain.odata.message.message import JSON, negotiate
from domain.odata.metadata.model_documents import document_response, model_document
from domain.query.base.access import Access
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.messages import quoted
from foundation.streamed_responses import PushedResponse
from foundation.texts import comma_separated
from identity.authentication import authenticated, require_scope_of
from identity.context import CallContext
from identity.credentials import read_credential
from identity.languages import LANGUAGE_OPTIONS
from identity.preferences import CONTEXT_PARAMETERS
from identity.rest import context_of
from identity.rest_views import PlatformView, PublicView
from identity.token_identity import identify

#: Maximum and default wait of a long poll in seconds.
MAX_WAIT_SECONDS, WAIT_SECONDS = 120, 30
_FRAMINGS: dict[str, type[Framing]] = {
    ServerSentEvents.content_type: ServerSentEvents,
    OneAnswer.content_type: OneAnswer,
}


class QuerySerializer(serializers.Serializer[None]):
    """The parameters of the stream."""

    since = serializers.CharField(required=False, default="")
    repository = serializers.CharField(required=False, default="")
    event = serializers.CharField(required=False, default="")
    wait = serializers.IntegerField(min_value=0, max_value=MAX_WAIT_SECONDS, required=False, default=WAIT_SECONDS)


#: Other parameters are refused, so that a mistyped filter does not mean no filter.
_PARAMETERS = QuerySerializer().fields.keys()
_OPTIONS = {*_PARAMETERS, *LANGUAGE_OPTIONS, *CONTEXT_PARAMETERS}


class EventsView(PlatformView):
    """The committed changes that the caller may read, from a cursor or from now on."""

    http_method_names = ["get"]

    def get(self, request: Request) -> PushedResponse:
        """Server-Sent Events if Accept asks for text/event-stream, else a long poll.

        Raises BadRequest, NotFound (repository), NotAcceptable, Gone (cursor), Unavailable (too many subscribers).
        """
        context = context_of(request)
        require_scope_of(context.scopes, "read")
        if unknown := sorted(request.query_params.keys() - _OPTIONS):
            raise _unreadable(unknown[0], unknown[0], _PARAMETERS)
        for name in _PARAMETERS:
            if len(request.query_params.getlist(name)) > 1:
                raise errors.repeated_parameter(name)
        given = QuerySerializer(data=request.query_params)
        given.is_valid(raise_exception=True)
        wanted = given.validated_data
        media = negotiate(request.META.get("HTTP_ACCEPT", ""), None, (OneAnswer.content_type, *_FRAMINGS)).media_type
        stream_filter = filter_of(wanted["repository"], wanted["event"], context)
        # A reconnecting client of Server-Sent Events repeats its URL, and sends its position in Last-Event-ID.
        since = request.META.get("HTTP_LAST_EVENT_ID", "") or wanted["since"]
        last, earlier = (feed.read_cursor(since), frozenset[int]()) if since else feed.position_now()
        hub.check_capacity(context.user_id)
        is_stream = media == ServerSentEvents.content_type
        subscription = Subscription(
            hub,
            context,
            stream_filter,
            _FRAMINGS[media](),
            last,
            earlier=earlier,
            seconds=STREAM_SECONDS if is_stream else wanted["wait"],
            renew=lambda: _renewed(request._request),
            refusal=lambda error: failure_response(error, request._request),
        )
        # Proxies must not buffer parts; X-Accel-Buffering is for nginx.
        headers = {"Content-Type": media, "X-Accel-Buffering": "no"}
        return PushedResponse(subscription, headers=headers)


class AsyncApiView(PublicView):
    """The AsyncAPI document of the stream."""

    def get(self, request: Request) -> HttpResponse:
        document = model_document("asyncapi", lambda: orjson.dumps(asyncapi_tree()))
        return http_response(document_response(document, JSON, lower_headers(request._request)))


def filter_of(repository: str, event: str, context: CallContext) -> StreamFilter:
    """The filter of comma-separated repositories and operations; "" for all.

    Raises BadRequest for unknown names, NotFound for a repository that the caller may not read.
    """
    for name, names_text in (("repository", repository), ("event", event)):
        if names_text and not comma_separated(names_text):
            raise errors.BadRequest(errors.BAD_QUERY_OPTION, name, Message("it has no name"), target=name)
    names = {name for text in comma_separated(repository) for name in _names(text, context)}
    by_name = {name.lower(): letter for letter, name in OPERATIONS.items()}
    operations = set()
    for text in comma_separated(event):
        if text.lower() not in by_name:
            raise _unreadable("event", text, OPERATIONS.values())
        operations.add(by_name[text.lower()])
    return StreamFilter(frozenset(names) or None, frozenset(operations or OPERATIONS))


def _unreadable(option: str, text: str, known: Iterable[str]) -> errors.BadRequest:
    reason = Message("{0} is not one of {1}", quoted(text), ", ".join(known))
    return errors.BadRequest(errors.BAD_QUERY_OPTION, option, reason, target=option)


def _names(text: str, context: CallContext) -> set[str]:
    repository = repositories.for_entity_name(text)
    if repository is None:
        known = [each.name for each in repositories]
        raise errors.BadRequest(errors.UNKNOWN_REPOSITORY, text, near(text, known), target="repository")
    Access(context.permissions).check_readable(repository)
    return {repository.name, *(subtype.name for subtype in repository.subtypes)}


def _renewed(request: HttpRequest) -> CallContext:
    """The context of the same request with the caller's current rights. Its DPoP proof is not checked again."""
    context = authenticated(request, identify(read_credential(request.META)))
    require_scope_of(context.scopes, "read")
    return context
