"""DataFrames of Spark as input, and as output of each window."""
