"""The plan: what will run, as plain data with a JSON form, a fingerprint and a readable diff."""

from dagkit.plan.comparison import Change, diff
from dagkit.plan.fingerprint import fingerprint
from dagkit.plan.model import Plan
from dagkit.plan.parse import read_plan, write_plan

__all__ = ["Change", "Plan", "diff", "fingerprint", "read_plan", "write_plan"]
