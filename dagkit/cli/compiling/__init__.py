"""Commands that compile an application and show what became of it."""
