"""What others measured: rows of files as deployments with their times, or as a lever's two arms."""
