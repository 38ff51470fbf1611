"""SENDMAIL: sends a message by Django's mail backend, from a worker after the commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from django.core.mail import EmailMessage
from django.db import transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _
from django_q.tasks import async_task

from domain.dataset.checks.authority import of_caller
from domain.dataset.records.dry_run_hooks import ReportEntry
from domain.dataset.records.record import UnitOfWork
from domain.dataset.transactions.stored_writes import write_handlers
from foundation import dry_runs
from foundation.failures import record_problem
from foundation.validators import email_problem
from identity.context import CallContext
from identity.mailed_links import mail_is_configured
from rules.actions.base import MESSAGE, VALUE, ActionType, BoundAction, ParameterRule, action_types, listed_in
from rules.read_access import Reads, unreadable
from rules.scope import Finding, RuleScope, finding
from rules.specs import ActionSpec

if TYPE_CHECKING:
    from rules.firing import Firing


_WRITE_HANDLER = "SendMail"


@action_types.register
class SendMail(ActionType):
    """Parameters: recipients, subject, body. Rendered at the event, sent after the commit."""

    name = "SENDMAIL"
    number = 2
    description = _("Sends a message by e-mail once the change is saved.")
    phrase = _("send a mail")
    discloses_entity = True
    parameters = (
        ParameterRule(_("recipients"), VALUE, lead=_("to")),
        ParameterRule(_("subject"), MESSAGE, lead=_("with the subject")),
        ParameterRule(_("text"), MESSAGE, required=False, lead=_("and the text")),
    )

    def check(self, action: ActionSpec, rule: RuleScope) -> Iterator[Finding]:
        """Check that constant recipients are addresses, and that the instance has a mail server."""
        yield from super().check(action, rule)
        if not mail_is_configured():
            yield finding("ActionType", _("SENDMAIL cannot send: this instance has no mail server (EMAIL_URL)."))
        recipients = action.parameters[0]
        if recipients.type in (None, "Constant") and recipients.value:
            for address in listed_in(recipients.value):
                if email_problem(address):
                    yield finding("Parameter1Value", _("'{0}' is not an e-mail address."), address)

    def run(self, action: BoundAction, firing: Firing) -> None:
        """Defer the message to the commit; an invalid recipient gives a warning."""
        recipients = []
        for address in listed_in(action.text(0, firing)):
            if email_problem(address) is None:
                recipients.append(address)
            else:
                firing.dataset.warnings.append(gettext("'{0}' is not an e-mail address.").replace("{0}", address))
        if not recipients:
            return
        subject = action.text(1, firing, escape="header")
        body = action.text(2, firing)
        mail = _Mail(firing.rule.code, recipients, subject, body, self._is_readable(action, firing))
        record = firing.record
        about = (record.repository.name, record.id) if record.is_new else None
        firing.dataset.defer_write(firing.key("SENDMAIL", action.spec.index), _MailWrite(mail, record.dataset, about))

    def _is_readable(self, action: BoundAction, firing: Firing) -> bool:
        """Whether the caller of a dry run may read all data in the message."""
        if dry_runs.current() is None:
            return False
        record = firing.record
        reads = Reads(record.repository.name, frozenset(path for _, path in self.paths(action)))
        return not unreadable(of_caller(record.dataset.context), reads, record, firing.events)


def enqueue_mail(recipients: list[str], subject: str, body: str) -> None:
    """Enqueue the message, or record that it cannot be sent."""
    if can_send(recipients, subject):
        async_task("rules.actions.mail.send_mail_now", recipients, subject, body, task_name=f"mail: {subject[:60]}")


@dataclass(frozen=True, slots=True)
class _Mail:
    """A message that is enqueued after the commit. readable: a dry run may show it to the caller."""

    rule: str
    recipients: list[str]
    subject: str
    body: str
    readable: bool

    def __call__(self) -> None:
        enqueue_mail(self.recipients, self.subject, self.body)

    def report_entries(self, context: CallContext) -> Iterator[ReportEntry]:
        """The message; without its content if the caller may not read all of its data."""
        shown = {"to": self.recipients, "subject": self.subject, "body": self.body} if self.readable else {}
        yield "mails", {"rule": self.rule, **shown}


@dataclass(frozen=True, slots=True)
class _MailWrite:
    """The part of the commit, in this request or in a later one, that enqueues the message (StorableWrite).

    about   repository and guid of an entity that was new at the event. If it is deleted before the commit, the
            message is dropped
    """

    mail: _Mail
    dataset: UnitOfWork
    about: tuple[str, str] | None

    def __call__(self) -> None:
        self.write_all([self])

    @classmethod
    def write_all(cls, writes: Sequence[Self]) -> None:
        """Enqueue the messages after the database's commit; robust, because the change can no longer be refused."""
        for write in writes:
            if write.about is None or write.dataset.load(*write.about) is not None:
                transaction.on_commit(write.mail, robust=True)

    def serialize(self) -> tuple[str, Any]:
        """The name of the write handler, and the message with its entity as JSON."""
        return _WRITE_HANDLER, {"mail": asdict(self.mail), "about": self.about}


@write_handlers.function(_WRITE_HANDLER)
def mails_enqueue_stored(dataset: UnitOfWork, payloads: Sequence[dict[str, Any]]) -> None:
    """Enqueue the messages that `_MailWrite.serialize` stored."""
    _MailWrite.write_all([_MailWrite(_Mail(**payload["mail"]), dataset, payload["about"]) for payload in payloads])


def send_mail_now(recipients: list[str], subject: str, body: str) -> int:
    """Send the message; returns the number of sent messages. Runs in a worker."""
    if not can_send(recipients, subject):
        return 0
    return EmailMessage(subject=" ".join(subject.splitlines()), body=body, to=recipients).send()


def can_send(recipients: list[str], subject: str) -> bool:
    """Whether the instance has a mail server; records the message as not sent if it has none."""
    if mail_is_configured():
        return True
    record_problem(
        f"SENDMAIL to {', '.join(recipients)}",
        f"'{subject}' was not sent: this instance has no mail server. Set EMAIL_URL.",
    )
    return False
