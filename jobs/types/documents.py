"""DocumentChangeState: moves the documents that match a filter to a state."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.utils.translation import gettext_noop as _

from domain.dataset.commit.retries import RetryState, run_with_retries
from domain.entities.document_states import FORWARD, document_change_state
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.api.rows import parse_filter, select_ids
from foundation import errors
from foundation.enums import DOCUMENT_STATE
from foundation.messages import TranslatableMessage as Message
from foundation.messages import quoted
from identity.context import CallContext
from jobs.run import Run
from jobs.types.base import JobType, Setting, SettingRefused, Values, job_types

#: Keys per query.
PAGE = 200


@job_types.register
class DocumentChangeState(JobType):
    """Commits each document by itself, so that rules refuse single documents; a run continues after the last one.

    progress: {"after": guid of the last document, "changed": number, "refused": number}
    """

    name = "DocumentChangeState"
    number = 0
    description = _("Moves the documents that match a filter to a state, one by one, with all rules.")
    settings = (
        Setting("Repository", str, "Crm.Sales.SalesOrders", _("Repository"), choices=lambda context: _documents()),
        Setting("Filter", str, "DocumentDate lt 2026-01-01", _("Filter of the documents, as $filter of the API")),
        Setting("State", str, "Closed", _("New state"), choices=lambda context: FORWARD),
    )

    def check(self, values: Values, context: CallContext) -> Iterator[SettingRefused]:
        """The repository has documents, the filter can be read there, and the state exists."""
        try:
            state = DOCUMENT_STATE.member(values["State"])
        except ValueError:
            state = ""
        if state not in FORWARD:
            yield SettingRefused("State", Message("{0} is not one of {1}", quoted(values["State"]), ", ".join(FORWARD)))
        name = values["Repository"]
        documents = _documents()
        if name not in documents:
            yield SettingRefused(
                "Repository", Message("there are no documents in {0}.{1}", quoted(name), near(name, documents))
            )
            return
        try:
            select_ids(repositories[name], ctx=context, filter=_filter(values, ""), limit=1)
        except errors.PlatformError as exc:
            yield SettingRefused("Filter", Message("the filter does not fit: {0}", exc.message))

    def run(self, run: Run, values: Values) -> str:
        """Change the documents. Raises Refused if every document was refused."""
        repository, state = repositories[values["Repository"]], DOCUMENT_STATE.member(values["State"])
        done = run.progress
        done.setdefault("after", "")
        while ids := _next_ids(repository, values, run.context, done["after"]):
            for id in ids:
                run.check_time()
                try:
                    run_with_retries(partial(_change, run, repository, id, state))
                except errors.PlatformError as exc:
                    run.log(f"{repository.set_name}({id}): {exc.message}")
                    done.update(after=id, refused=done.get("refused", 0) + 1)
                    run.record()
        changed, refused = done.get("changed", 0), done.get("refused", 0)
        if refused and not changed:
            raise errors.Refused(errors.JOB_FAILED, Message("{0} documents refused the state {1}", refused, state))
        return f"{changed} documents are {state} now, {refused} refused it."


def _documents() -> list[str]:
    return [each.name for each in repositories if each.is_document and not each.abstract]


def _filter(values: Values, after: str) -> str:
    parse_filter(values["Filter"])  # a complete expression, which cannot close the parenthesis
    conditions = [f"({values['Filter']})", "Void eq false", f"State ne '{values['State']}'"]
    return " and ".join([*conditions, f"Id gt {after}"] if after else conditions)


def _next_ids(repository: Repository[Any], values: Values, context: CallContext, after: str) -> list[str]:
    return select_ids(repository, ctx=context, filter=_filter(values, after), orderby="Id", limit=PAGE)


def _change(run: Run, repository: Repository[Any], id: str, state: str, retry: RetryState) -> None:
    """Change one document, and record the progress in the same commit."""
    before, console = dict(run.progress), run.row.console
    try:
        with retry.locking():
            dataset = run.dataset()
            document = dataset.open(repository, id, "update")
            document_change_state(document, state)
            run.log(f"{document.describe()}: {state}")
            run.progress.update(after=id, changed=before.get("changed", 0) + 1)
            dataset.commit()
    except BaseException:
        run.progress.clear()
        run.progress.update(before)
        run.row.console = console
        raise
