"""Branches of periodic motions tracked on a rig: backbones by phase control, response curves with folds."""
