"""Observers that tell others of a run: Prometheus, OpenTelemetry, and whoever reads lines of JSON."""
