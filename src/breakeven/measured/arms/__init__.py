"""One file a lever: how a row that measures it becomes two arms."""
