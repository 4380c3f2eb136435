"""What runs plans: each backend in a package of its own."""
