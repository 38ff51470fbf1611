"""Authors of managed scripts: the user who saved a script last. Each run has its author's authority besides its
caller's.
"""

from __future__ import annotations

from domain.dataset.checks.authors import Authors
from scripts.models import ScriptAuthor

AUTHORS = Authors(ScriptAuthor)
