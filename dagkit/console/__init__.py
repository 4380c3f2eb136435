"""The console: a page about one application, running or finished, and its JSON interface."""
