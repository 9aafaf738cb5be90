"""The curves behind a reconstruction of phase space."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.figures.saving import new_figure, save


def save_embedding(found: dict[str, Any], channel: str, unit: str, path: str) -> None:
    """Draw delay, false neighbours, correlation sum, singular values, divergence and the reconstruction."""
    figure, axes = new_figure(2, 3)
    label = f"{channel} [{unit}]" if unit else channel
    _delays(axes[0, 0], found)
    _false_neighbours(axes[0, 1], found)
    _correlation(axes[0, 2], found, unit)
    _singular(axes[1, 0], found, unit)
    _divergence(axes[1, 1], found)
    points = found["points"][:, : 20 * round(found["mean_period"])]
    axes[1, 2].plot(points[0], points[min(1, len(points) - 1)], lw=0.4)
    axes[1, 2].set(title="reconstruction", xlabel=label, ylabel=f"{label}, delayed {found['delay']} samples")
    save(figure, path)


def _delays(axis: Any, found: dict[str, Any]) -> None:
    information, correlation = found["delays"]["information"], found["delays"]["zero"]
    axis.plot(information.lags * found["dt"], information.curve / information.curve[0], label="information")
    axis.plot(correlation.lags * found["dt"], correlation.curve, label="autocorrelation")
    axis.axvline(found["delay"] * found["dt"], color="k", lw=0.8, ls="--")
    axis.set(title="delay", xlabel="lag [s]", ylabel="relative to lag 0")
    axis.legend()


def _false_neighbours(axis: Any, found: dict[str, Any]) -> None:
    false = found["false"]
    axis.semilogy(false.dimensions, 100 * np.maximum(false.fractions, 1e-5), "o-")
    axis.axhline(1.0, color="k", lw=0.8, ls="--")
    axis.set(title="false neighbours", xlabel="dimension", ylabel="fraction [%]")


def _correlation(axis: Any, found: dict[str, Any], unit: str) -> None:
    if found["correlation"] is None:
        axis.set_axis_off()
        return
    c = found["correlation"].curve
    middle = np.sqrt(c.radii[1:] * c.radii[:-1])
    axis.semilogx(middle, c.slopes, ".-")
    axis.axvspan(*c.region, alpha=0.15)
    axis.axhline(found["correlation"].value, color="k", lw=0.8, ls="--")
    radius = f"radius [{unit}]" if unit else "radius"
    axis.set(
        title=f"correlation dimension {found['correlation'].value:.2f}", xlabel=radius, ylabel="local slope"
    )


def _singular(axis: Any, found: dict[str, Any], unit: str) -> None:
    s = found["singular"]
    axis.semilogy(range(1, len(s.values) + 1), np.maximum(s.values, 1e-12 * s.values[0]), "o-")
    axis.axhline(max(s.floor, 1e-12 * s.values[0]), color="k", lw=0.8, ls="--", label="noise floor")
    value = f"singular value [{unit}]" if unit else "singular value"
    axis.set(title="singular values", xlabel="number", ylabel=value)
    axis.legend()


def _divergence(axis: Any, found: dict[str, Any]) -> None:
    for name in ("rosenstein", "kantz"):
        if name in found:
            e = found[name]
            axis.plot(e.times, e.curve, label=f"{name}: {e.value:.4g} /s")
            axis.axvspan(*e.region, alpha=0.08)
    axis.set(title="divergence of neighbours", xlabel="time [s]", ylabel="mean log distance")
    if axis.get_legend_handles_labels()[0]:
        axis.legend()
