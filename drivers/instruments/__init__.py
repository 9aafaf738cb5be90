"""The real instruments: NI-DAQmx, serial controllers and generators, replay of a recording."""
