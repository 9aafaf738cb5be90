"""Public measurements made by others: fitted to their training data alone, then foretold."""
