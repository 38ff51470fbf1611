"""Untranslated texts of libraries, listed for the message catalogues; no code uses them."""

from django.utils.translation import gettext_noop as _

#: Django's admin has no Bulgarian for these, which screen readers read out.
ADMIN = (_("Model name"), _("Add link"), _("Change or view list link"))
#: Tasks and their fields in django-q2.
TASKS = (
    _("Failed task"),
    _("Failed tasks"),
    _("Task id"),
    _("Function"),
    _("Hook"),
    _("Arguments"),
    _("Keyword arguments"),
    _("Group"),
    _("Cluster"),
    _("Started at"),
    _("Stopped at"),
    _("Success"),
    _("Attempt count"),
    _("32-character task identifier."),
    _("Optional human-readable name for lookup and display."),
    _("Dotted import path to the callable, e.g. myapp.tasks.job."),
    _("Optional dotted path to a callback that receives the task result."),
    _("Pickled positional arguments (tuple)."),
    _("Pickled keyword arguments (dict)."),
    _("Pickled return value or error payload."),
    _("Optional group id to aggregate related tasks."),
    _("Name of the cluster that executed this task."),
    _("When the worker started executing the task."),
    _("When the worker finished (success or failure)."),
    _("False if the task raised an exception or timed out."),
    _("How many times execution was attempted."),
)
