"""The compiler: from an application to a plan, in the steps draw, expand, resolve, check, fuse and order."""

from dagkit.compiler.steps import STEPS, Compilation, Step, compile_application, compile_until

__all__ = ["STEPS", "Compilation", "Step", "compile_application", "compile_until"]
