"""Everything over several processes: launching, sums, shards, batch normalisation."""
