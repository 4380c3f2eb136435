"""The runs of an application: where they run, and what is done with the windows of earlier ones."""
