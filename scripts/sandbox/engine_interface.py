"""Functions of the engine's C interface that its Python package lacks: promise rejections, and compiled code.

All are looked up before confinement, after which nothing can be loaded and no memory made executable.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

# quickjs.h, where pointers have 64 bits.
TAG_OBJECT: Final = -1
TAG_UNDEFINED: Final = 3
TAG_BOOL: Final = 1
TAG_EXCEPTION: Final = 6
EVAL_STRIP: Final = 1 << 4  # no names of variables, no lines
EVAL_COMPILE_ONLY: Final = 1 << 5
OBJECT_BYTECODE: Final = 1
# module.c of the package: a Context is a PyObject, then its JSRuntime and its JSContext.
RUNTIME_OFFSET: Final = object.__basicsize__
CONTEXT_OFFSET: Final = RUNTIME_OFFSET + ctypes.sizeof(ctypes.c_void_p)
# The package's name of all sources, which positions.py searches in stacks.
SOURCE_NAME: Final = b"<input>"


class JSValue(ctypes.Structure):
    """A value as the engine passes it: a pointer or a small number, and its type."""

    _fields_ = (("content", ctypes.c_uint64), ("tag", ctypes.c_int64))


Hook = ctypes.CFUNCTYPE(None, ctypes.c_void_p, JSValue, JSValue, ctypes.c_int, ctypes.c_void_p)


class EngineError(Exception):
    """Code that does not compile, or throws."""


class EngineInterface:
    """Functions on contexts of the package.

    The constructor raises OSError and AttributeError if the extension does not export the engine's functions; methods
    raise ValueError if the memory layout of contexts is not as expected.
    """

    def __init__(self, extension_path: str) -> None:
        pointer, number = ctypes.c_void_p, ctypes.c_int
        self._library = ctypes.CDLL(extension_path)
        self._runtime_of = self._function("JS_GetRuntime", pointer, pointer)
        self._global_object = self._function("JS_GetGlobalObject", JSValue, pointer)
        self._property = self._function("JS_GetPropertyStr", JSValue, pointer, JSValue, ctypes.c_char_p)
        self._call = self._function("JS_Call", JSValue, pointer, JSValue, JSValue, number, ctypes.POINTER(JSValue))
        self._exception = self._function("JS_GetException", JSValue, pointer)
        self._track_rejections = self._function("JS_SetHostPromiseRejectionTracker", None, pointer, Hook, pointer)
        self._evaluate = self._function(
            "JS_Eval", JSValue, pointer, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, number
        )
        self._write_object = self._function(
            "JS_WriteObject", pointer, pointer, ctypes.POINTER(ctypes.c_size_t), JSValue, number
        )
        self._read_object = self._function("JS_ReadObject", JSValue, pointer, ctypes.c_char_p, ctypes.c_size_t, number)
        self._run_function = self._function("JS_EvalFunction", JSValue, pointer, JSValue)
        self._free_memory = self._function("js_free", None, pointer, pointer)
        self._free_value = self._function("__JS_FreeValue", None, pointer, JSValue)
        self._hook = Hook(self._report_rejection)

    def watch_rejections(self, context: Any, name: str) -> None:
        """Call the context's global function of that name for rejected promises from now on.

        Otherwise a script whose async function throws would end as if it had succeeded: JavaScript code cannot
        intercept the promises of async functions. The arguments are (promise, reason, false) for a rejection without a
        handler, (promise, reason, true) when it is handled later. The function must live as long as the context; the
        global may be deleted.
        """
        runtime, inner = self._inside(context)
        everything = self._global_object(inner)
        function = self._property(inner, everything, name.encode())
        self._release(inner, everything)
        if function.tag != TAG_OBJECT:
            raise ValueError(f"{name} is no function")
        self._track_rejections(runtime, self._hook, function.content)
        self._release(inner, function)

    def compiled(self, context: Any, source: str) -> bytes:
        """Compile a source for `run` in any context of this process. Raises EngineError if it does not compile.

        Its functions have no line numbers, so positions in stacks are never theirs.

        Each context is a separate engine, which would parse the same preludes again: that took two thirds of a short
        run's processor time.
        """
        _, inner = self._inside(context)
        encoded = source.encode()
        function = self._checked(
            inner,
            self._evaluate(inner, encoded, len(encoded), SOURCE_NAME, EVAL_COMPILE_ONLY | EVAL_STRIP),
            "a prelude's source",
        )
        size = ctypes.c_size_t()
        address = self._write_object(inner, ctypes.byref(size), function, OBJECT_BYTECODE)
        self._release(inner, function)
        if not address:
            raise EngineError("a prelude's source cannot be stored")
        code = ctypes.string_at(address, size.value)
        self._free_memory(inner, address)
        return code

    def run(self, context: Any, code: bytes) -> None:
        """Run code of `compiled`, and no other, since the engine trusts it. Raises EngineError if it throws.

        It may define functions that call Python, but must not call them: only the package handles the interpreter
        lock.
        """
        _, inner = self._inside(context)
        function = self._checked(inner, self._read_object(inner, code, len(code), OBJECT_BYTECODE), "a prelude's code")
        # `_run_function` frees the function itself.
        self._release(inner, self._checked(inner, self._run_function(inner, function), "a prelude"))

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        function = self._library[name]
        function.argtypes, function.restype = arguments, result
        return function

    def _inside(self, context: Any) -> tuple[int, int]:
        """Addresses of the engine's runtime and context."""
        if type(context).__basicsize__ < CONTEXT_OFFSET + ctypes.sizeof(ctypes.c_void_p):
            raise ValueError("the engine's contexts are laid out in another way")
        runtime = ctypes.c_void_p.from_address(id(context) + RUNTIME_OFFSET).value
        inner = ctypes.c_void_p.from_address(id(context) + CONTEXT_OFFSET).value
        if not runtime or not inner or self._runtime_of(inner) != runtime:
            raise ValueError("the engine's contexts are laid out in another way")
        return runtime, inner

    def _checked(self, inner: int, value: JSValue, what: str) -> JSValue:
        if value.tag == TAG_EXCEPTION:
            self._release(inner, self._exception(inner))
            raise EngineError(f"{what} fails")
        return value

    def _release(self, inner: int, value: JSValue) -> None:
        """JS_FreeValue, which is inline in the engine's header: objects begin with their reference count."""
        if value.tag < 0:
            count = ctypes.c_int.from_address(value.content)
            count.value -= 1
            if count.value <= 0:
                self._free_value(inner, value)

    def _report_rejection(self, inner: int, promise: JSValue, reason: JSValue, is_handled: int, function: int) -> None:
        """Called by the engine: calls the function of `watch_rejections`."""
        arguments = (JSValue * 3)(promise, reason, JSValue(int(is_handled != 0), TAG_BOOL))
        undefined = JSValue(0, TAG_UNDEFINED)
        answer = self._call(inner, JSValue(function, TAG_OBJECT), undefined, 3, arguments)
        if answer.tag == TAG_EXCEPTION:  # out of memory or stack, which also fails the script
            self._release(inner, self._exception(inner))
