"""Text as values of a type, and values as properties of a component."""
