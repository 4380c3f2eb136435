"""Commands that compile an application and show the result."""
