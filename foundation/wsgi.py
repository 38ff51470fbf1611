"""Keys that the platform's web server adds to a WSGI environ."""

from typing import Final

#: The body came in chunks, so its end cannot be checked by a length.
CAME_IN_CHUNKS: Final = "platform.came_in_chunks"
