"""Export and import of Open Data Fabric manifests."""
