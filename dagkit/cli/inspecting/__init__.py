"""Commands that show what a run did: its ledger, its partitions, its splits."""
