"""A warm driver: a process that keeps a local Spark running, and runs launches in processes that it forks."""
