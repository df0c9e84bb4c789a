"""Several processes: launching, sums, shards and batch normalisation."""
