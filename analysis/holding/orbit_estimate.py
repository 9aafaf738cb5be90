"""The orbit that averaged samples and the model tell together.

The average over cycles of a hold leaves noise that differs from node to node; the specimen's motion does not.
With X the mean motion at the nodes, y its averages with standard errors r, and q the drift that the model
misses in a tick,

    minimise   sum |y(j) - C X(j)|^2 / r^2  +  sum |X(j+1) - Phi(X(j), mean corrections)|^2 / q,

a smoother around the orbit (Rauch, Tung, Striebel 1965, made periodic) by Gauss-Newton. q counts in full:
what the model misses is the same in every cycle and does not average out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.holding.linearise import Deviations, linearise
from analysis.holding.outlook import outputs_and_slopes
from analysis.holding.plant import LoopPlant

Array = NDArray[np.float64]

STEPS = 4
SMALL = 1e-7  # of the spread: a step that ends the search


@dataclass(frozen=True, eq=False)
class OrbitEstimate:
    """States [n, J] of the mean motion, and the standard errors of what each channel [channels, J] shows."""

    states: Array
    errors: Array


def estimate_orbit(
    plant: LoopPlant, start: Array, mean: Array, errors: Array, command: Array, multiple: int
) -> OrbitEstimate:
    """From the channels' ``mean`` [channels, J] with ``errors`` of each, and the mean ``command`` [J] over
    the amplitude; ``start`` [n, J]: states to begin with."""
    n, count = start.shape
    states = start.copy()
    weight = 1.0 / np.maximum(errors, 1e-300) ** 2
    miss_weight = plant.scale**2 / plant.process_noise[:n]
    for _ in range(STEPS):
        dev = linearise(plant, states)
        shown, slopes = outputs_and_slopes(plant, states, multiple)
        normal, right = _model_part(dev, states / plant.scale[:, None], command, miss_weight, plant.scale)
        for j in range(count):
            c = slopes[j]
            place = slice(j * n, (j + 1) * n)
            normal[place, place] += c.T @ (weight[:, None] * c)
            right[place] += c.T @ (weight * (mean[:, j] - shown[:, j]))
        step = np.linalg.solve(normal, right).reshape(count, n).T
        states = states + step * plant.scale[:, None]
        if np.abs(step).max() < SMALL:
            break
    covariance = np.linalg.inv(normal).reshape(count, n, count, n)
    own = covariance[np.arange(count), :, np.arange(count), :]
    variance = np.einsum("jcn,jnm,jcm->cj", slopes, own, slopes)
    return OrbitEstimate(states, np.sqrt(variance))


def shown_of_modes(plant: LoopPlant, theta: Array) -> Array:
    """[channels, N] what the modes beside the model add to each channel at phases ``theta`` of the drive:
    their answer to its force."""
    total = np.zeros((len(plant.channels), len(theta)))
    for k in range((len(plant.force) + 1) // 2):
        push = plant.force[0] if k == 0 else complex(plant.force[2 * k - 1], -plant.force[2 * k])
        turning = _mode_answer(plant, k * plant.omega)[:, None] * push * np.exp(1j * k * theta)
        total += turning.real
    return total


def shown_of_corrections(plant: LoopPlant, command: Array, multiple: int) -> Array:
    """[channels, J] what the modes add in answer to the mean ``command`` [J] over the amplitude."""
    count = len(command)
    spectrum = np.fft.rfft(command)
    omega = plant.omega / multiple * np.arange(len(spectrum))
    path, held = plant.path, 2 * np.pi * multiple / count / plant.omega  # s that a correction stands
    force = path.gain * plant.amplitude * spectrum * np.sinc(omega * held / (2 * np.pi))
    force = force * np.exp(-1j * omega * (path.delay + 0.5 * held)) / (1 + 1j * omega * path.lag)
    answer = np.array([_mode_answer(plant, float(w)) for w in omega]).T
    return np.asarray(np.fft.irfft(answer * force, count, axis=1))


def _mode_answer(plant: LoopPlant, omega: float) -> NDArray[np.complex128]:
    """[channels] what the modes add for a force of size one at ``omega`` rad/s."""
    total = np.zeros(len(plant.channels), dtype=np.complex128)
    for mode in plant.modes:
        place = 1 / (mode.frequency**2 - omega**2 + 2j * mode.damping * mode.frequency * omega)
        total += np.array(mode.shows) @ np.array([place, 1j * omega * place])
    return total


def _model_part(
    dev: Deviations, d: Array, command: Array, weight: Array, scale: Array
) -> tuple[Array, Array]:
    """Normal matrix and right side of sum |d(j+1) + step(j+1) - end(j) - A step(j)|^2, in spreads."""
    n, count = d.shape
    A = dev.A[:, :n, :n]
    following = np.roll(np.arange(count), -1)
    miss = (dev.ends / scale[:, None] + pushed(dev, command)).T - d.T[following]
    normal = np.zeros((count, n, count, n))
    right = np.zeros((count, n))
    for j, k in enumerate(following):
        wa = weight[:, None] * A[j]
        normal[j, :, j] += A[j].T @ wa
        normal[k, :, k] += np.diag(weight)
        normal[k, :, j] -= wa
        normal[j, :, k] -= wa.T
        right[j] -= A[j].T @ (weight * miss[j])
        right[k] += weight * miss[j]
    return normal.reshape(count * n, count * n), right.ravel()


def pushed(dev: Deviations, command: Array) -> Array:
    """[n, J] by how much the mean corrections move each end, in spreads; their force is periodic."""
    n = dev.A.shape[1] - 1
    old, new = np.roll(command, dev.whole + 1), np.roll(command, dev.whole)
    feed = dev.B1[:, n] * old + dev.B2[:, n] * new
    force, decay = np.zeros(len(command)), dev.A[:, n, n]
    for _ in range(2):  # one round to forget where it began: a lag is far shorter than an orbit
        for j in range(len(command)):
            force[(j + 1) % len(command)] = decay[j] * force[j] + feed[j]
    states = dev.A[:, :n, n] * force[:, None] + dev.B1[:, :n] * old[:, None] + dev.B2[:, :n] * new[:, None]
    return np.asarray(states.T)
