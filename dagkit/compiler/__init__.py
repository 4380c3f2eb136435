"""From what an author drew to a plan: check, expand, resolve, fuse, order."""

from dagkit.compiler.steps import STEPS, Compilation, Step, compile_application, compile_until

__all__ = ["STEPS", "Compilation", "Step", "compile_application", "compile_until"]
