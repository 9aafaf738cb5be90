"""The numerics of Shakedown: arrays in, result objects out.

What other programs need is imported from here: ``from analysis import Model, Record, identify``. The rooms
below are the inside. A name is loaded when it is first asked for: a ``Record`` does not cost the estimators.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    # what is measured
    "base.record": "Channel Excitation Marker Record Span moment_after time_after",
    "base.derive": "calibrate resample",
    "signal.inputs": "Inputs",
    "simulation.sensor": "Sensor",
    "experiment": "Conditions Experiment",
    "experiment.curves": "MeasuredCurve MeasuredDecay",
    # the equations and their motion
    "model": "Model Parameter",
    "model.editing": "with_parameter",
    "model.grammar": "FUNCTIONS",
    "simulation.simulate": "sensitivities simulate",
    "simulation.virtual_record": "virtual_record",
    # from records to parameters with error bars and a verdict
    "estimate.methods": "METHODS OWN_METHODS identify option_types own_module",
    "estimate.curves": "identify_curves",
    "estimate.identifiability": "confusion_words",
    "estimate.latent_states": "LatentStates latent_states why_no_states",
    "estimate.profiling": "can_be_profiled profile_of",
    "estimate.bootstrap": "FittedMotion fitted_motion with_draws",
    "estimate.weak.recursive": "RecursiveWeak",
    "estimate.discovery.library": "Library Shape monomials oscillator system",
    "estimate.discovery.selection": "Selection select_terms",
    "estimate.discovery.completion": "Completion complete",
    "base.words": "percent",
    "base.identification": "Curve Estimate Identification Profiled Surface interval_ends with_bounds "
    "with_error",
    # does the model move as the specimen does
    "validation": "Check Panel Sweep Trace Validation validate",
    "validation.exponents": "ModelSpectrum model_spectrum",
    "validation.response": "predict_response",
    "validation.foretold": "foretold",
    "validation.held": "HeldMotion",
    "validation.subject": "Subject prepare_subject",
    # what to measure next
    "planning.knowledge": "Knowledge knowledge_of",
    "planning.prospect": "Bound Prospect stderr_after",
    "planning.exchange": "Criterion best_alone choose_segments larger_bars",
    "planning.duration": "seconds_needed",
    "planning.rivals": "Misfit choose_separating misfit",
    # what many results say together
    "population": "DRIFT WANDERING ChangePoint Control RandomEffects change_points control random_effects",
    # what a model does in the long run
    "dynamics.bifurcation": "bifurcation",
    "dynamics.continuation": "Branch BranchPoint follow period_rule",
    "dynamics.equilibrium": "equilibria",
    "dynamics.imposed": "ImposedMotions",
    "dynamics.lyapunov": "lyapunov_spectrum",
    "dynamics.settled": "settled_orbit",
    "dynamics.tone_drive": "TONE_AMPLITUDE TONE_FREQUENCY driven_by_a_tone",
    # orbits and invariants of a record
    "motion.verdict": "Motion examine",
    "motion.exponent": "Exponent",
    "motion.dimension": "dimension_of_all",
    "motion.sampling": "coarse noise_beside_motion",
    "orbits.autonomous": "autonomous_orbits mean_turn",
    "orbits.forced": "forced_orbits",
    "orbits.orbit": "Orbits PeriodicOrbit",
    "orbits.search_space": "SearchSpace channel_space state_space",
    "orbits.spectrum": "exponent_spectrum kaplan_yorke",
    "reconstruct.delay": "delay_by_autocorrelation delay_by_mutual_information",
    "reconstruct.dimension": "correlation_dimension false_neighbours singular_spectrum",
    "reconstruct.embedding": "delay_coordinates singular_coordinates",
    "reconstruct.exponents": "largest_exponent wolf_exponent",
    "reconstruct.quantification": "recurrence_quantities",
    # signals, live and at rest
    "signal.amplitude_spectrum": "amplitude_spectrum",
    "signal.drive": "drive_frequency line_error",
    "signal.envelope": "RollingEnvelope envelope",
    "signal.frequency_response": "ESTIMATORS WINDOWS FrequencyResponse ResponseAverager default_lines doubts "
    "frequency_response ratio_unit",
    "signal.linear_approximation": "Distortion LinearApproximation linear_approximation",
    "signal.moments": "RecentMoments",
    "signal.noise": "noise_level",
    "signal.resonances": "Resonance resonances",
    "signal.smoothing": "is_rate",
    "signal.permutation_entropy": "permutation_entropy",
    "signal.strobe": "sample_at strobe_positions",
    "signal.timescale": "mean_period theiler_window",
    "signal.tone": "ToneResponse strongest_line tone_response",
    # errors, progress, files' texts
    "base.errors": "Cancelled DataError ModelError ShakedownError",
    "base.progress": "SILENT Progress Step",
    "base.options": "parse_options",
    "base.parsing": "parse_json parse_toml read_as",
    # the program itself
    "base.extras": "EXTRAS MissingExtra missing_extra need_extra",
    "base.plugins": "PluginError load_plugin not_used package_of plugged",
    "base.version": "__version__",
}
_HOMES = {name: room for room, names in _NAMES.items() for name in names.split()}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'analysis' has no name {name!r}")
    found = getattr(import_module(f"analysis.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(_HOMES)
