"""The work of a slot while its window runs: until its deadline, and, with a board, handed over to idle slots."""
