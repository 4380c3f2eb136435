"""Event time: watermarks from records, and aggregates in windows of event time."""
