"""From the source to the recording: engine, triggers, sequences, the process that owns the rig."""
