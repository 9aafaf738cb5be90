"""Everything that produces or drives signals: instruments, the virtual rig, replay, recordings on disk."""
