"""The instance's licence, changed as an administrator changes it: in the admin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.acceptance.caller import Caller, answered
from tests.acceptance.people import Browser, Fields

_PAGE = "/admin/identity/licence/1/change/"


@dataclass(slots=True)
class Licence:
    """A browser of a signed-in administrator, and a caller whose session has the first slot."""

    browser: Browser
    service: Caller

    @contextmanager
    def changed(self, **values: str) -> Iterator[None]:
        """Other values of the licence's form as long as the block lasts; an empty one leaves its field out."""
        answered(self.service.get(""), 200)
        before = Fields(answered(self.browser.get(_PAGE), 200).text).values
        self._save({name: value for name, value in {**before, **values}.items() if value or name not in values})
        try:
            yield
        finally:
            self._save(before)

    def _save(self, values: dict[str, str]) -> None:
        page = f"{self.browser.site.base_url}{_PAGE}"
        saved = self.browser.http.post(page, values, headers={"Referer": page}, timeout=60, allow_redirects=False)
        answered(saved, 302)
