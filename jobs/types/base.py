"""Base of job types: one registered class each (spec 10.4).

    @job_types.register
    class Prune(JobType):
        name = "Prune"
        number = 101

The members of JobType are the registered types: $metadata, the admin and validation read the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from domain.entities.systems_config import JOB_TYPE
from domain.model.naming import near
from foundation.enums import EnumCatalogue
from foundation.messages import TranslatableMessage as Message
from foundation.messages import quoted
from identity.context import CallContext

if TYPE_CHECKING:
    from jobs.run import Run

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """A member of JobConfigurations, a JSON object, and its input in the admin (jobs.settings_input).

    type      str, bool, int, list (of texts) or dict
    example   shown to authors
    label     of the input
    choices   the values that the author may see; None: any
    """

    name: str
    type: type
    example: Any
    label: str
    required: bool = True
    default: Any = None
    choices: Callable[[CallContext], Iterable[str]] | None = None


class SettingRefused(ValueError):
    """A problem of JobConfigurations: a Message, and the name of the setting, "" if it is not that of one."""

    def __init__(self, setting: str, message: str, *, is_missing: bool = False) -> None:
        super().__init__(message)
        self.setting = setting
        self.is_missing = is_missing


class JobType:
    """Base of every job type.

    number               of the member in $metadata; public, never reused
    description          shown to authors
    settings             the members of JobConfigurations
    administrators_only  the job's author must be an administrator
    """

    name: ClassVar[str] = ""
    number: ClassVar[int]
    description: ClassVar[str] = ""
    settings: ClassVar[tuple[Setting, ...]] = ()
    administrators_only: ClassVar[bool] = False

    def check(self, values: Values, context: CallContext) -> Iterator[SettingRefused]:
        """Problems of the settings; `context` is that of the user who saves the job."""
        return iter(())

    def run(self, run: Run, values: Values) -> str:
        """Do the work; returns a sentence in English about it. Raises PlatformError, or TimeLimit when it stops early.

        A worker may die at any moment, and another continues from `run.progress`. So each commit records the progress
        in the same database transaction (`run.dataset`, `run.record`).
        """
        raise NotImplementedError

    def example(self) -> str:
        """JobConfigurations as an example; "" for a type without settings."""
        values = {setting.name: setting.example for setting in self.settings}
        return orjson.dumps(values).decode() if values else ""


job_types: EnumCatalogue[JobType] = EnumCatalogue("job type", JOB_TYPE)


def read_settings(job_type: JobType, text: str | None) -> dict[str, Any]:
    """The values of JobConfigurations, defaults included. Raises SettingRefused for the first problem."""
    for problem in setting_problems(job_type, text):
        raise problem
    given = _members(job_type, text)
    values = ((setting, given.get(setting.name)) for setting in job_type.settings)
    return {setting.name: setting.default if value is None else value for setting, value in values}


def setting_problems(job_type: JobType, text: str | None) -> Iterator[SettingRefused]:
    """The problems of JobConfigurations, one for each setting that is missing or has a wrong type."""
    try:
        given = _members(job_type, text)
    except SettingRefused as problem:
        yield problem
        return
    for setting in job_type.settings:
        name, value = setting.name, given.get(setting.name)
        if value is None:
            if setting.required:
                missing = Message("{0} needs {1}, for example {2}", job_type.name, name, job_type.example())
                yield SettingRefused(name, missing, is_missing=True)
        elif type(value) is not setting.type or (
            isinstance(value, list) and not all(isinstance(each, str) for each in value)
        ):
            yield SettingRefused(name, Message("{0} must be like {1}", name, setting.example))


def _members(job_type: JobType, text: str | None) -> dict[str, Any]:
    """The members of the JSON object. Raises SettingRefused for other JSON, and for a member that is no setting."""
    try:
        given = orjson.loads(text) if text and text.strip() else {}
    except orjson.JSONDecodeError as exc:
        raise SettingRefused("", Message("it is no JSON: {0}", str(exc))) from exc
    if not isinstance(given, dict):
        raise SettingRefused("", Message("it must be a JSON object, for example {0}", job_type.example() or "{}"))
    known = [setting.name for setting in job_type.settings]
    for name in given:
        if name not in known:
            raise SettingRefused(
                "", Message("{0} has no setting {1}.{2}", job_type.name, quoted(name), near(name, known))
            )
    return given
