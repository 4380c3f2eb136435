"""Past windows, read from a ledger; nothing here writes."""
