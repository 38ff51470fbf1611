"""Authors of managed scripts: the user who saved a script last. A run is limited by its author's and its caller's
rights.
"""

from __future__ import annotations

from domain.dataset.checks.authors import Authors
from scripts.models import ScriptAuthor

AUTHORS = Authors(ScriptAuthor)
