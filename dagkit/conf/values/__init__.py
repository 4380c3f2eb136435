"""Converting text to values of a type, and setting values as properties of a component."""
