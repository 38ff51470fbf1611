"""RunScript: runs a managed script."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
from django.utils.translation import gettext_noop as _

from domain.dataset.checks import access
from domain.dataset.dataset import Dataset
from domain.model.registry import repositories
from domain.query.api.rows import select_rows
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.messages import quoted
from identity.context import CallContext
from identity.licences import ADVANCED_BPM, require_feature
from jobs.run import Run
from jobs.types.base import JobType, Setting, SettingRefused, Values, job_types
from scripts import managed
from scripts.services import FailedRun

_SCRIPTS = "Systems.Core.Scripts"


@job_types.register
class RunScript(JobType):
    """Commits the script's pending changes when it succeeds, together with the progress.

    A script whose worker died before its first commit has changed nothing and is run again; after a commit it is not,
    because its position is unknown. progress: {"commits": number, "result": text}
    """

    name = "RunScript"
    number = 100
    description = _("Runs a managed script with arguments and commits what it changes.")
    settings = (
        Setting("Script", str, "PRICES", _("Managed script"), choices=lambda context: _codes(context)),
        Setting("Arguments", dict, {"percent": 5}, _("Arguments, as a JSON object"), required=False, default={}),
    )

    def check(self, values: Values, context: CallContext) -> Iterator[SettingRefused]:
        """The script exists."""
        if Dataset(context).find_one(_SCRIPTS, code=values["Script"]) is None:
            yield SettingRefused("Script", Message("there is no script with the code {0}", quoted(values["Script"])))

    def run(self, run: Run, values: Values) -> str:
        """Run the script. Raises Refused: the script is missing, inactive, refused or failed; JOB_INTERRUPTED."""
        if "result" in run.progress:
            return str(run.progress["result"])
        if run.progress.get("commits"):
            raise errors.Refused(errors.JOB_INTERRUPTED, values["Script"])
        require_feature(ADVANCED_BPM)
        run.progress["commits"] = 1  # stored by the script's own commits, too
        dataset = run.dataset()
        script = dataset.find_one(_SCRIPTS, code=values["Script"])
        if script is None:
            raise errors.Refused(
                errors.JOB_FAILED, Message("there is no script with the code {0}", quoted(values["Script"]))
            )
        outcome = managed.execute(script, values["Arguments"], dataset)
        if outcome.console:
            run.log(outcome.console)
        if isinstance(outcome, FailedRun):
            raise outcome.error
        returned = {"parameters": outcome.outputs, "returnValue": outcome.return_value}
        run.progress["result"] = f"The script {values['Script']} returned {orjson.dumps(returned).decode()[:2000]}"
        dataset.commit()
        return str(run.progress["result"])


def _codes(context: CallContext) -> list[str]:
    """Codes of the scripts that the author may read."""
    repository = repositories[_SCRIPTS]
    if not access.allowed(context, repository, "read"):
        return []
    return [str(code) for (code,) in select_rows(repository, ("Code",), ctx=context, orderby="Code")]
