"""The profile of a rig on a sound card."""

PROFILE = """
name = "card"
rate = 8000
[limits]
amplitude = 1.0
slew = 5000.0
[[channels]]
name = "x"
unit = "mm"
sensitivity = 0.5
[[channels]]
name = "drive"
unit = "V"
[instruments.source]
driver = "sound"
wiring = { x = 0, drive = 1 }
full_scale = 4.0
loopback = "drive"
[instruments.exciter]
driver = "sound"
full_scale = 2.0
corner = 20.0
"""
