"""What all drivers share: the protocols, waveforms, limits, triggers, clocks and processes."""
