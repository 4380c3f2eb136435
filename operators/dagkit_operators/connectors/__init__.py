"""Sources and sinks of systems that dagkit does not know, which an author writes in one class."""
