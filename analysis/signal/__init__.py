"""Sampled signals: noise, smoothing, splines, inputs between samples, tones, spectra."""
