"""Many runs over processes and machines: where the work comes from, who does it, and the search of `pretrain`."""
