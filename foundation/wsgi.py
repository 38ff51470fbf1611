"""Keys that the platform's web server adds to a WSGI environ."""

from collections.abc import Callable, Mapping
from typing import Any, Final

#: The body came in chunks, so its end cannot be checked by a length.
CAME_IN_CHUNKS: Final = "platform.came_in_chunks"
#: A function that calls its argument when the client disconnects, and returns a function that ends this.
ON_DISCONNECT: Final = "platform.on_disconnect"


def on_disconnect(environ: Mapping[str, Any], callback: Callable[[], None]) -> Callable[[], None]:
    """Call `callback`, in any thread, when the client disconnects; the function that is returned ends this.

    Other servers do not tell.
    """
    watch: Callable[[Callable[[], None]], Callable[[], None]] | None = environ.get(ON_DISCONNECT)
    return (lambda: None) if watch is None else watch(callback)
