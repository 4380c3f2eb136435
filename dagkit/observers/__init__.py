"""Observers that publish run events: for Prometheus, for OpenTelemetry, and as lines of JSON."""
