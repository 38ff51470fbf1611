"""Keys that the platform's web server adds to a WSGI environ."""

from collections.abc import Callable, Mapping
from typing import Any, Final

#: Whether the body has chunked encoding, so that no length shows whether it is complete.
HAS_CHUNKED_BODY: Final = "platform.came_in_chunks"
#: A function: registers its argument as callback for the client's disconnect; returns a function that unregisters it.
ON_DISCONNECT: Final = "platform.on_disconnect"


def on_disconnect(environ: Mapping[str, Any], callback: Callable[[], None]) -> Callable[[], None]:
    """Call `callback`, in any thread, when the client disconnects; returns a function that unregisters it.

    Other servers do not report disconnects: there the callback is never called.
    """
    watch: Callable[[Callable[[], None]], Callable[[], None]] | None = environ.get(ON_DISCONNECT)
    return (lambda: None) if watch is None else watch(callback)
