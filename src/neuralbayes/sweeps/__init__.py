"""Many runs on several processes and machines: a queue, workers, and the search of settings for `pretrain`."""
