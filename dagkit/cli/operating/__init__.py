"""Commands on applications that run: what they do now, and when they end."""
