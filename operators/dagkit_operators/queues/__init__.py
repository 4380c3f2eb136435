"""Input from message brokers, which are acknowledged after the commit."""
