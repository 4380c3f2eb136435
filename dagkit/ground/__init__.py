"""What knows nothing of dagkit: paths and URLs, clocks, patterns, mappings, libraries, garbage, names of modules."""
