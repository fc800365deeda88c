"""Pages of the ledger, one module per page."""
