"""Reference data: entities that nearly every write reads and that change seldom, such as currencies and units.

A repository declares it by `cache_version = reference_data.CACHE_VERSION`; its children belong to it. The dataset
caches their rows (domain.dataset.tables.reference_rows), so such rows are written by datasets only.
"""

from typing import Final

#: In foundation.cache_versions.
CACHE_VERSION: Final = "reference_data"
