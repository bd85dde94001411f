"""``python -m breakeven``."""

from breakeven.cli import main

main()
