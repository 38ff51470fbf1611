"""Status cards of the instance for the home page of administrators: one card for each part (spec 09, 9.5).

Each function in _MAKERS makes a card: with a fixed number of queries, whatever the size of the tables, and a link to
the page where an administrator can act. If a function raises, only its card is missing.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django_q.brokers import get_broker
from django_q.models import Failure

from domain.entities.systems_monitoring import InformationMessage
from foundation.fields import utc_now
from identity.usage import NEARLY_FULL, Usage, usage_by_hour, usage_now, usage_warnings
from platform_site import health
from platform_site.discovery import WORKING, described_sites
from rules.selectors import broken_rules, failing_rules
from scripts.models import ScriptRun
from webhooks.selectors import LATE_SECONDS, delivery_statistics, workers_alive

logger = logging.getLogger(__name__)

#: The state of a part; also its CSS class.
GOOD, WARNING, BAD = "good", "warning", "bad"
_WORDS = {GOOD: _("In order"), WARNING: _("Needs attention"), BAD: _("In trouble")}

_SHOWN_LINES = 5
_SHOWN_CHARACTERS = 120
_RECENT = datetime.timedelta(hours=24)
# The sparkline in its own units.
_SPARK_STEP, _SPARK_HEIGHT, _SPARK_MARGIN = 10, 40, 3


@dataclass(frozen=True, slots=True)
class Line:
    """A line below a card's figure, with a link to the affected object."""

    text: str
    note: str = ""
    state: str = ""
    url: str = ""
    when: datetime.datetime | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """One part: a figure and what it counts (said), lines, and a drawing of the figure's history."""

    name: str
    title: str
    url: str
    state: str
    figure: str = ""
    said: str = ""
    lines: tuple[Line, ...] = ()
    drawing: SafeString | None = None

    @property
    def word(self) -> Promise:
        """The state in words, for users who do not see its colour."""
        return _WORDS[self.state]


Maker = Callable[[HttpRequest], Card]


def cards(request: HttpRequest) -> list[Card]:
    """All cards, in the order of the page."""
    return [_card(name, make, request) for name, make in _MAKERS.items()]


def _card(name: str, make: Maker, request: HttpRequest) -> Card:
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
    lines.append(Line(ngettext("%(count)s task waits", "%(count)s tasks wait", waiting) % {"count": _number(waiting)}))
    return Card(
        "workers",
        gettext("Workers"),
        _listed("django_q_failure"),
        BAD if not alive else WARNING if problem else GOOD,
        _number(len(alive)),
        ngettext("worker process", "worker processes", len(alive)),
        tuple(lines),
    )


def _licence(request: HttpRequest) -> Card:
    taken, slots = usage_now()
    hours = usage_by_hour(utc_now())
    most = max(hour.most for hour in hours)
    said = gettext("At most %(most)s at once in 24 hours") % {"most": _number(most)}
    sessions = _listed("identity_session")
    warnings = [Line(text, state=WARNING, url=sessions) for text in usage_warnings()]
    return Card(
        "licence",
        gettext("Sessions"),
        sessions,
        BAD if taken >= slots else WARNING if warnings else GOOD,
        gettext("%(taken)s of %(slots)s") % {"taken": _number(taken), "slots": _number(slots)},
        gettext("licensed sessions"),
        (*warnings, Line(said, url=reverse("admin:identity_licence_change", args=[1]))),
        _gauge(taken, slots) + sparkline(hours, slots),
    )


def _gauge(taken: int, slots: int) -> SafeString:
    top = max(slots, 1)
    gauge = '<meter min="0" max="{}" high="{}" value="{}" aria-label="{}"></meter>'
    return format_html(gauge, top, int(top * NEARLY_FULL), taken, gettext("licensed sessions"))


def sparkline(hours: Sequence[Usage], slots: int) -> SafeString:
    """An SVG of the sessions by hour and the line of the licence's slots, without script or inline style."""
    top = max(slots, 1, *(hour.most for hour in hours))
    width = _SPARK_STEP * (len(hours) - 1)
    reach = _SPARK_HEIGHT - 2 * _SPARK_MARGIN

    def height(count: int) -> str:
        return f"{_SPARK_MARGIN + reach * (1 - count / top):.1f}"

    points = " ".join(f"{at * _SPARK_STEP},{height(hour.most)}" for at, hour in enumerate(hours))
    return format_html(
        '<svg class="sparkline" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<line x1="0" x2="{}" y1="{}" y2="{}"/><polyline points="{}"/></svg>',
        width, _SPARK_HEIGHT, gettext("Sessions at once in the last 24 hours; the line is the number of slots"),
        width, height(slots), height(slots), points,
    )  # fmt: skip


def _webhooks(request: HttpRequest) -> Card:
    result = delivery_statistics()
    pages = "webhooks_webhookdelivery"
    waiting = result.by_state["Pending"] + result.by_state["Delivering"]
    lag = Line(gettext("Longest wait"), gettext("%(seconds)s s") % {"seconds": _number(round(result.lag_seconds))})
    counted = {"Failed": gettext("Failed"), "Suspended": gettext("Held back")}
    lines = [
        lag,
        *(
            Line(title, _number(result.by_state[state]), BAD if result.by_state[state] else "", _of_state(pages, state))
            for state, title in counted.items()
        ),
    ]
    if result.suspended_templates:
        lines.append(
            Line(gettext("Suspended templates"), _number(result.suspended_templates), BAD, _listed("domain_webhook"))
        )
    lines += [Line(host, gettext("does not answer"), WARNING) for host in result.open_circuits[:_SHOWN_LINES]]
    trouble = result.suspended_templates or result.lag_seconds > LATE_SECONDS
    attention = result.by_state["Failed"] or result.open_circuits
    return Card(
        "webhooks",
        gettext("Webhooks"),
        _listed(pages),
        BAD if trouble else WARNING if attention else GOOD,
        _number(waiting),
        ngettext("delivery waits", "deliveries wait", waiting),
        tuple(lines),
    )


def _of_state(pages: str, state: str) -> str:
    return _listed(pages, f"?state__exact={state}")


def _rules(request: HttpRequest) -> Card:
    broken = broken_rules()
    failing, failing_count = failing_rules(_SHOWN_LINES)
    lines = [Line(rule.code, _short(rule.problem), BAD, _rule_page(rule.id)) for rule in broken[:_SHOWN_LINES]]
    lines += [
        Line(
            rule.code,
            gettext("%(failures)s failures in %(runs)s runs")
            % {"failures": _number(rule.failures), "runs": _number(rule.runs)},
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
        % {"broken": _number(len(broken)), "failing": _number(failing_count)}
        if concerned
        else "0",
        "" if concerned else gettext("broken or failing"),
        tuple(lines),
    )


def _rule_page(rule_id: str) -> str:
    return reverse("admin:domain_userbusinessrule_change", args=[rule_id])


def _errors(request: HttpRequest) -> Card:
    since = utc_now() - _RECENT
    result = InformationMessage.objects.filter(information_message_type="Error")
    runs = ScriptRun.objects.exclude(outcome="Succeeded")
    tasks = Failure.objects.all()
    counts = {
        _listed("domain_informationmessage", "?information_message_type__exact=Error"): result.filter(
            information_message_time__gte=since
        ).count(),
        _listed("scripts_scriptrun"): runs.filter(started__gte=since).count(),
        _listed("django_q_failure"): tasks.filter(started__gte=since).count(),
    }
    count = sum(counts.values())
    newest = sorted(_error_lines(result, runs, tasks), key=lambda line: str(line.when), reverse=True)[:_SHOWN_LINES]
    return Card(
        "errors",
        gettext("Recent errors"),
        max(counts, key=lambda page: counts[page]),  # the list with most of them
        WARNING if count else GOOD,
        _number(count),
        gettext("in 24 hours"),
        tuple(newest),
    )


def _error_lines(messages: QuerySet[InformationMessage], runs: QuerySet[ScriptRun], tasks: Any) -> Iterator[Line]:
    """The newest of each kind: recorded failures, failed scripts, failed tasks."""
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


def _number(value: int) -> str:
    """The number as the user's language writes it."""
    return number_format(value, use_l10n=True, force_grouping=True)


_MAKERS: dict[str, Maker] = {
    "sites": _sites,
    "workers": _workers,
    "licence": _licence,
    "webhooks": _webhooks,
    "rules": _rules,
    "errors": _errors,
}
