"""The inventory of an application: its input files, and what became or would become of each."""
