"""What `neuralbayes doctor` finds out: software, machine, data, how fast training is, and what to change."""
