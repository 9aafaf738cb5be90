"""Stand-ins for the hardware: specimen, sensors, device server, simulated instruments."""
