"""Cards of the home page: sales for users who may read orders, the user's saved queries, and the state of the
instance for administrators (spec 09, 9.5).

Each function in SALES and INSTANCE returns a card, with a fixed number of queries for any size of the tables, and a
link to the page where the user can act. If a function raises, only its card is missing.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import Truncator
from django.utils.translation import gettext, ngettext
from django_q.brokers import get_broker
from django_q.models import Failure

from domain.admin.context import is_administrator
from domain.database.replicas import Reason, replica_states
from domain.entities.systems_monitoring import InformationMessage
from foundation.fields import utc_now
from identity.usage import usage_by_hour, usage_chart, usage_now, usage_warnings
from platform_site import health
from platform_site.cards import BAD, GOOD, WARNING, Card, Line, number_text
from platform_site.discovery import WORKING, described_sites
from platform_site.first_steps import first_steps_card
from platform_site.models import RecordedRequest
from platform_site.request_inspector import detail_path, unexpected_failures
from platform_site.sales_cards import may_read_sales, orders_card, sales_card
from platform_site.tiles import tiles_list
from rules.charts import firings_chart
from rules.selectors import broken_rules, failing_rules
from rules.statistics import firings_by_day
from scripts.models import ScriptRun
from webhooks.charts import hours_chart
from webhooks.selectors import MAX_LAG_SECONDS, deliveries_by_hour, delivery_statistics, workers_alive

logger = logging.getLogger(__name__)

_SHOWN_LINES = 5
_SHOWN_CHARACTERS = 120
_RECENT = datetime.timedelta(hours=24)


#: None: no card.
Maker = Callable[[HttpRequest], Card | None]


@dataclass(frozen=True, slots=True)
class Section:
    """Cards under a title."""

    name: str
    title: str
    cards: list[Card]


def sections(request: HttpRequest) -> list[Section]:
    """The cards that the user may see, in the order of the page."""
    result = []
    if is_administrator(request) and (steps := _cards({"first-steps": first_steps_card}, request)):
        result.append(Section("start", gettext("First steps"), steps))
    if may_read_sales(request):
        result.append(Section("sales", gettext("Sales of a year"), _cards(SALES, request)))
    if tiles := tiles_list(request):
        result.append(Section("tiles", gettext("My queries"), tiles))
    if is_administrator(request):
        result.append(Section("health", gettext("State of the instance"), _cards(INSTANCE, request)))
    return result


def _cards(makers: Mapping[str, Maker], request: HttpRequest) -> list[Card]:
    return [card for name, make in makers.items() if (card := _card(name, make, request)) is not None]


def _card(name: str, make: Maker, request: HttpRequest) -> Card | None:
    try:
        return make(request)
    except Exception:
        logger.exception("the card of %s cannot be shown", name)
        title = gettext("This part of the overview cannot be shown; the log says why.")
        return Card(name, name.capitalize(), "", BAD, said=title)


def _listed(model: str, query: str = "") -> str:
    return reverse(f"admin:{model}_changelist") + query


def _short(text: str) -> str:
    return Truncator(" ".join(text.split())).chars(_SHOWN_CHARACTERS)


def _sites(request: HttpRequest) -> Card:
    lines = tuple(
        Line(
            site["Type"],
            site["StatusDescription"] or gettext("works"),
            GOOD if site["Status"] == WORKING else BAD,
            site["Url"],
        )
        for site in described_sites(request)
    )
    working = sum(line.state == GOOD for line in lines)
    return Card(
        "sites",
        gettext("Sites"),
        reverse("discovery"),
        GOOD if working == len(lines) else BAD,
        gettext("%(count)s of %(all)s") % {"count": working, "all": len(lines)},
        gettext("work"),
        lines,
    )


def _workers(request: HttpRequest) -> Card:
    alive = workers_alive()
    waiting = get_broker().queue_size()
    problem = health.examine("worker").problem
    lines = [Line(worker.worker, when=worker.seen_at, state=GOOD) for worker in alive[:_SHOWN_LINES]]
    if problem:
        lines.insert(0, Line(problem, state=BAD))
    lines.append(
        Line(ngettext("%(count)s task waits", "%(count)s tasks wait", waiting) % {"count": number_text(waiting)})
    )
    return Card(
        "workers",
        gettext("Workers"),
        _listed("django_q_failure"),
        BAD if not alive else WARNING if problem else GOOD,
        number_text(len(alive)),
        ngettext("worker process", "worker processes", len(alive)),
        tuple(lines),
    )


def _replicas(request: HttpRequest) -> Card | None:
    """The state of the database replicas, as seen by this process; None without replicas."""
    states = [each for each in replica_states() if each.reason is not Reason.NO_REPLICA]
    if not states:
        return None
    used = sum(each.reason is None for each in states)
    lines = tuple(
        Line(
            each.name,
            _short(each.problem) or gettext("does not answer, or is catching up")
            if each.lag_seconds is None
            else gettext("%(seconds)s s behind") % {"seconds": number_text(round(each.lag_seconds, 1))},
            GOOD if each.reason is None else BAD,
        )
        for each in states
    )
    return Card(
        "replicas",
        gettext("Replicas of the database"),
        "",
        GOOD if used == len(states) else BAD if not used else WARNING,
        gettext("%(count)s of %(all)s") % {"count": used, "all": len(states)},
        gettext("answer reads"),
        lines,
    )


def _licence(request: HttpRequest) -> Card:
    taken, slots = usage_now()
    hours = usage_by_hour(utc_now())
    most = max(hour.most for hour in hours)
    said = gettext("At most %(most)s at once in 24 hours") % {"most": number_text(most)}
    sessions = _listed("identity_session")
    warnings = [Line(text, state=WARNING, url=sessions) for text in usage_warnings()]
    return Card(
        "licence",
        gettext("Sessions"),
        sessions,
        BAD if taken >= slots else WARNING if warnings else GOOD,
        gettext("%(taken)s of %(slots)s") % {"taken": number_text(taken), "slots": number_text(slots)},
        gettext("licensed sessions"),
        (*warnings, Line(said, url=reverse("admin:identity_licence_change", args=[1]))),
        usage_chart(hours, slots, "H:i"),
    )


def _webhooks(request: HttpRequest) -> Card:
    result = delivery_statistics()
    pages = "webhooks_webhookdelivery"
    waiting = result.by_state["Pending"] + result.by_state["Delivering"]
    lag = Line(gettext("Longest wait"), gettext("%(seconds)s s") % {"seconds": number_text(round(result.lag_seconds))})
    counted = {"Failed": gettext("Failed"), "Suspended": gettext("Held back")}
    lines = [
        lag,
        *(
            Line(
                title,
                number_text(result.by_state[state]),
                BAD if result.by_state[state] else "",
                _listed(pages, f"?state__exact={state}"),
            )
            for state, title in counted.items()
        ),
    ]
    if result.suspended_templates:
        lines.append(
            Line(
                gettext("Suspended templates"), number_text(result.suspended_templates), BAD, _listed("domain_webhook")
            )
        )
    lines += [Line(host, gettext("does not answer"), WARNING) for host in result.open_circuits[:_SHOWN_LINES]]
    trouble = result.suspended_templates or result.lag_seconds > MAX_LAG_SECONDS
    attention = result.by_state["Failed"] or result.open_circuits
    return Card(
        "webhooks",
        gettext("Webhooks"),
        _listed(pages),
        BAD if trouble else WARNING if attention else GOOD,
        number_text(waiting),
        ngettext("delivery waits", "deliveries wait", waiting),
        tuple(lines),
        hours_chart(deliveries_by_hour()),
    )


def _rules(request: HttpRequest) -> Card:
    broken = broken_rules()
    failing, failing_count = failing_rules(_SHOWN_LINES)
    lines = [Line(rule.code, _short(rule.problem), BAD, _rule_page(rule.id)) for rule in broken[:_SHOWN_LINES]]
    lines += [
        Line(
            rule.code,
            gettext("%(failures)s failures in %(runs)s runs")
            % {"failures": number_text(rule.failures), "runs": number_text(rule.runs)},
            WARNING,
            _rule_page(rule.id),
        )
        for rule in failing
    ]
    concerned = len(broken) + failing_count
    return Card(
        "rules",
        gettext("Business rules"),
        _listed("domain_userbusinessrule"),
        BAD if broken else WARNING if failing else GOOD,
        gettext("%(broken)s broken, %(failing)s failing")
        % {"broken": number_text(len(broken)), "failing": number_text(failing_count)}
        if concerned
        else "0",
        "" if concerned else gettext("broken or failing"),
        tuple(lines),
        firings_chart(gettext("Firings of rules by day"), firings_by_day()),
    )


def _rule_page(rule_id: str) -> str:
    return reverse("admin:domain_userbusinessrule_change", args=[rule_id])


def _errors(request: HttpRequest) -> Card:
    since = utc_now() - _RECENT
    result = InformationMessage.objects.filter(information_message_type="Error")
    runs = ScriptRun.objects.exclude(outcome="Succeeded")
    tasks = Failure.objects.all()
    requests = unexpected_failures(since)
    counts = {
        _listed("platform_site_recordedrequest", "?outcome=unexpected"): requests.count(),
        _listed("domain_informationmessage", "?information_message_type__exact=Error"): result.filter(
            information_message_time__gte=since
        ).count(),
        _listed("scripts_scriptrun"): runs.filter(started__gte=since).count(),
        _listed("django_q_failure"): tasks.filter(started__gte=since).count(),
    }
    count = sum(counts.values())
    newest = sorted(_error_lines(result, runs, tasks, requests), key=lambda line: str(line.when), reverse=True)[
        :_SHOWN_LINES
    ]
    return Card(
        "errors",
        gettext("Recent errors"),
        max(counts, key=lambda page: counts[page]),  # the list with the most failures
        WARNING if count else GOOD,
        number_text(count),
        gettext("in 24 hours"),
        tuple(newest),
    )


def _error_lines(
    messages: QuerySet[InformationMessage], runs: QuerySet[ScriptRun], tasks: Any, requests: QuerySet[RecordedRequest]
) -> Iterator[Line]:
    """The newest of each kind: recorded failures, failed scripts, failed tasks, failed requests."""
    for request in requests[:_SHOWN_LINES]:
        yield Line(_short(str(request)), _short(request.message), BAD, detail_path(request), request.at)
    for message in messages.order_by("-information_message_time")[:_SHOWN_LINES]:
        url = reverse("admin:domain_informationmessage_change", args=[message.pk])
        yield Line(
            _short(message.process_description), _short(message.message), BAD, url, message.information_message_time
        )
    for run in runs.order_by("-started")[:_SHOWN_LINES]:
        url = reverse("admin:scripts_scriptrun_change", args=[run.pk])
        yield Line(run.name or run.kind, _short(f"{run.outcome}: {run.message}"), BAD, url, run.started)
    for task in tasks.order_by("-started")[:_SHOWN_LINES]:
        url = reverse("admin:django_q_failure_change", args=[task.pk])
        yield Line(_short(task.func), _short(str(task.result or "")), BAD, url, task.started)


SALES: dict[str, Maker] = {"orders": orders_card, "sales": sales_card}


def _slow(request: HttpRequest) -> Card:
    since = utc_now() - _RECENT
    slow = RecordedRequest.objects.filter(at__gte=since, duration_ms__gte=settings.SLOW_REQUEST_SECONDS * 1000)
    count = slow.count()
    lines = [
        Line(
            _short(f"{row.method} {row.path}"),
            gettext("%(seconds)s s") % {"seconds": number_text(row.duration_ms / 1000, 1)},
            url=detail_path(row),
            when=row.at,
        )
        for row in slow.order_by("-duration_ms")[:_SHOWN_LINES]
    ]
    return Card(
        "slow",
        gettext("Slow requests"),
        _listed("platform_site_recordedrequest", "?outcome=slow"),
        WARNING if count else GOOD,
        number_text(count),
        gettext("in 24 hours"),
        tuple(lines),
    )


INSTANCE: dict[str, Maker] = {
    "sites": _sites,
    "workers": _workers,
    "replicas": _replicas,
    "licence": _licence,
    "webhooks": _webhooks,
    "rules": _rules,
    "errors": _errors,
    "slow": _slow,
}
