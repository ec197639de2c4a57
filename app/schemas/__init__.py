"""What answers hold, as JSON shapes: a module for each kind of resource."""
