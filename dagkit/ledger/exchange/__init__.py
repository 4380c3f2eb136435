"""Open Data Fabric manifests, out and in."""
