"""The plan: what will run, as plain data with a JSON form, a fingerprint and a difference in words."""
