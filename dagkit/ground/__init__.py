"""What imports nothing of dagkit but its errors: paths, URLs, clocks, patterns, mappings, libraries, names of Apex."""
