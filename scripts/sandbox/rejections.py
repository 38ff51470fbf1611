"""Tracks unhandled promise rejections through the C interface of the engine.

A script whose async function throws would otherwise end as if it had succeeded: the engine makes the promise of an
async function, which reaches no function that JavaScript could replace, and the Python package does not offer the
engine's callback. The callback is a ctypes function, made before confinement, which allows no executable memory
afterwards. It calls a function of the context (preludes/sandbox.js), which keeps the unhandled rejections.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

# quickjs.h, where pointers have 64 bits.
TAG_OBJECT: Final = -1
TAG_UNDEFINED: Final = 3
TAG_BOOL: Final = 1
TAG_EXCEPTION: Final = 6
# module.c of the package: a Context is a PyObject, then its JSRuntime and its JSContext.
RUNTIME_OFFSET: Final = object.__basicsize__
CONTEXT_OFFSET: Final = RUNTIME_OFFSET + ctypes.sizeof(ctypes.c_void_p)


class JSValue(ctypes.Structure):
    """A value as the engine passes it: a pointer or a small number, and its type."""

    _fields_ = (("content", ctypes.c_uint64), ("tag", ctypes.c_int64))


Hook = ctypes.CFUNCTYPE(None, ctypes.c_void_p, JSValue, JSValue, ctypes.c_int, ctypes.c_void_p)


def rejection_watcher(extension_path: str) -> Callable[[Any, str], None]:
    """`watch(context, name)`: from now on the context's global function of that name is called with (promise, reason,
    false) when a promise is rejected that nothing handles, and with (promise, reason, true) when that is handled later.

    The function must live as long as the context does; the global may go. Raises OSError and AttributeError where the
    extension does not show the engine's functions, ValueError where its objects are not laid out as expected.
    """
    engine = ctypes.CDLL(extension_path)
    engine.JS_GetRuntime.argtypes, engine.JS_GetRuntime.restype = [ctypes.c_void_p], ctypes.c_void_p
    engine.JS_GetGlobalObject.argtypes, engine.JS_GetGlobalObject.restype = [ctypes.c_void_p], JSValue
    engine.JS_GetPropertyStr.argtypes = [ctypes.c_void_p, JSValue, ctypes.c_char_p]
    engine.JS_GetPropertyStr.restype = JSValue
    engine.JS_Call.argtypes = [ctypes.c_void_p, JSValue, JSValue, ctypes.c_int, ctypes.POINTER(JSValue)]
    engine.JS_Call.restype = JSValue
    engine.JS_GetException.argtypes, engine.JS_GetException.restype = [ctypes.c_void_p], JSValue
    engine.JS_SetHostPromiseRejectionTracker.argtypes = [ctypes.c_void_p, Hook, ctypes.c_void_p]
    engine.JS_SetHostPromiseRejectionTracker.restype = None
    free = engine["__JS_FreeValue"]
    free.argtypes, free.restype = [ctypes.c_void_p, JSValue], None

    def release(context: int, value: JSValue) -> None:
        """JS_FreeValue, which is inline in the engine's header: objects begin with their count of references."""
        if value.tag < 0:
            count = ctypes.c_int.from_address(value.content)
            count.value -= 1
            if count.value <= 0:
                free(context, value)

    undefined = JSValue(0, TAG_UNDEFINED)

    def tell(context: int, promise: JSValue, reason: JSValue, is_handled: int, function: int) -> None:
        arguments = (JSValue * 3)(promise, reason, JSValue(int(is_handled != 0), TAG_BOOL))
        answer = engine.JS_Call(context, JSValue(function, TAG_OBJECT), undefined, 3, arguments)
        if answer.tag == TAG_EXCEPTION:  # no memory or stack is left, which fails the script itself next
            release(context, engine.JS_GetException(context))

    hook = Hook(tell)

    def watch(context: Any, name: str) -> None:
        if type(context).__basicsize__ < CONTEXT_OFFSET + ctypes.sizeof(ctypes.c_void_p):
            raise ValueError("the engine's contexts are laid out in another way")
        runtime = ctypes.c_void_p.from_address(id(context) + RUNTIME_OFFSET).value
        inner = ctypes.c_void_p.from_address(id(context) + CONTEXT_OFFSET).value
        if not inner or engine.JS_GetRuntime(inner) != runtime:
            raise ValueError("the engine's contexts are laid out in another way")
        everything = engine.JS_GetGlobalObject(inner)
        function = engine.JS_GetPropertyStr(inner, everything, name.encode())
        release(inner, everything)
        if function.tag != TAG_OBJECT:
            raise ValueError(f"{name} is no function")
        engine.JS_SetHostPromiseRejectionTracker(runtime, hook, function.content)
        release(inner, function)

    return watch
