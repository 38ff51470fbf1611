"""ExportConfiguration: a job that exports the instance's configuration as a document (spec 10.4)."""

from __future__ import annotations

from django.utils.translation import gettext_noop as _

from jobs.run import Run
from jobs.types.base import JobType, Values, job_types
from platform_site.configuration import dump, export


@job_types.register
class ExportConfiguration(JobType):
    """Stores the document of manage.py export_config as the output of the run; administrators download it there."""

    name = "ExportConfiguration"
    number = 102
    description = _("Keeps the configuration as a YAML document with the run, as manage.py export_config writes it.")
    administrators_only = True

    def run(self, run: Run, values: Values) -> str:
        """Run the export. Returns a text with the number of objects."""
        document = export()
        run.output = (f"configuration-{run.row.due:%Y-%m-%d-%H%M}.yaml", dump(document))
        count = sum(len(section) for section in document.values() if isinstance(section, dict))
        return f"The configuration has {count} objects."
