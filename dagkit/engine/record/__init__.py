"""The record of a run: its checkpoints in the ledger, past windows read from there, and its events and figures."""
