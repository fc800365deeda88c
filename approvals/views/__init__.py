"""Pages of plans, one module per page."""
