"""DataFrames of Spark as input."""
