"""Topics of Kafka: finding ranges of offsets, reading them, and writing in transactions."""
