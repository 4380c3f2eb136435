"""What an author imports: ports, the kinds of operator, applications, the Dag, configuration and attributes."""
