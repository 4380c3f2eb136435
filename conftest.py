"""The test run of tests/ and apps/: its order, its limits and its reports."""

pytest_plugins = ["tests.run.sampling", "tests.run.groups", "tests.run.limits", "tests.run.reports"]
