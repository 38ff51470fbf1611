"""Registry of functions that delete rows past their retention (manage.py prune).

Each returns the number of rows. They run in the order of registration: a session is closed before its row is deleted.
"""

from __future__ import annotations

from collections.abc import Callable

from foundation.catalogue import Catalogue

pruners: Catalogue[Callable[[], int]] = Catalogue("pruner")
