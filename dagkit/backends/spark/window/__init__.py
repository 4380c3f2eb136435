"""Windows as Spark jobs: the backend, its tasks, and the workers that run them."""
