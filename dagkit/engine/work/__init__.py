"""The pending work of splittable operators: its cost, its allocation to slots, and where it is split. Pure."""
