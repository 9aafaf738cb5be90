"""What everything else stands on: errors, progress, records, results, compiled functions."""
