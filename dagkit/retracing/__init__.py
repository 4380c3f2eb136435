"""Retracing: windows that were committed are run again in part, to find where their input and output came from."""
