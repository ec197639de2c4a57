"""HTTP only: a module per resource."""
