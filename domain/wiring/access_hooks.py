"""Hooks for identity, which may not import the domain: checks of row policies, transactions of sessions."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.db.models import Count
from django.utils.translation import gettext as _

from domain.dataset.tables.models import DomainTransaction
from domain.dataset.transactions.domain_transactions import transactions_close
from domain.model.registry import repositories
from domain.query import compile_filter
from domain.query.base.access import CALL_VARIABLE, KNOWN_VARIABLES, VARIABLE_PREFIX
from domain.syntax import parse_boolean_expression
from domain.syntax.errors import ODataUrlError
from foundation import errors
from foundation.messages import quoted, translated
from identity import row_policies, session_hooks


def register() -> None:
    """Register the hooks; called once at start-up."""
    row_policies.register_filter_check(check_policy)
    row_policies.register_repository_names(lambda: [repository.name for repository in repositories])
    session_hooks.register(close=_close_transactions, count=_count_transactions)


def check_policy(repository_name: str, expression: str) -> None:
    """Bind a policy to its repository. Raises ValueError with a sentence and the position in the expression."""
    repository = repositories[repository_name]
    for found in CALL_VARIABLE.finditer(expression):
        if found[0][0] != "'" and found[0].lower() not in KNOWN_VARIABLES:
            known = ", ".join(sorted(KNOWN_VARIABLES.values()))
            raise ValueError(
                _at(
                    _("%(name)s is unknown; there are %(known)s") % {"name": found[0], "known": known},
                    expression,
                    found.start(),
                )
            )
    # Literals of the same length replace the variables, so that positions are the same in both texts.
    parsed = CALL_VARIABLE.sub(
        lambda match: match[0] if match[0][0] == "'" else "@" + "v" * (len(match[0]) - 1), expression
    )
    try:
        parse_boolean_expression(parsed)
    except ODataUrlError as error:
        raise ValueError(_at(translated(error.message, _).rstrip("."), expression, error.position)) from error
    try:
        compile_filter(repository, expression)
    except errors.PlatformError as error:
        name = error.target or ""
        position = expression.find(name) if name else -1
        if error.code is errors.TYPE_MISMATCH:
            bound_at, *reason = error.parameters
            error.parameters = (str(_own_position(int(bound_at), expression)), *reason)
        raise ValueError(_at(error.message.rstrip("."), expression, position)) from error


def _own_position(position: int, expression: str) -> int:
    """The position in the policy; the binder counts in a text with longer names for the variables."""
    for variable in CALL_VARIABLE.finditer(expression):
        if variable[0][0] != "'" and variable.start() < position:
            position -= len(f"@{VARIABLE_PREFIX}{variable[0][1:].replace('.', '__')}") - len(variable[0])
    return position


def _at(message: str, expression: str, position: int) -> str:
    if position < 0:
        return f"{message}."
    place = _("position %(position)s, at %(text)s") % {
        "position": position,
        "text": quoted(expression[position : position + 20]),
    }
    return f"{message} ({place})."


def _close_transactions(session_ids: Collection[str]) -> None:
    for session_id in session_ids:
        transactions_close(session_id)


def _count_transactions(session_ids: Collection[str]) -> Mapping[str, int]:
    rows = DomainTransaction.objects.filter(session_id__in=session_ids).values_list("session_id").annotate(Count("id"))
    return {str(session_id): count for session_id, count in rows}
