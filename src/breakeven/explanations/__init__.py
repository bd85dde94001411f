"""The arithmetic of an arm, a file a ledger: each gives lines whose numbers are those the evaluator used."""
