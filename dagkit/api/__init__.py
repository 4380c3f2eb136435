"""The interface for authors: operators, ports, state, applications, the Dag, configuration and attributes."""
