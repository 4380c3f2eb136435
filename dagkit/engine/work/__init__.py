"""The pending work of splittable operators: its cost, its allocation to slots, its splits, what is set aside. Pure."""
