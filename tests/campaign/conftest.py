"""pytest leaves this folder alone: ``make campaign`` runs it."""

collect_ignore_glob = ["*"]
