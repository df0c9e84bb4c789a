"""Networks, and what has to be known of any network to train it; no dataset names."""
