"""The one finish: maximum likelihood from a method's start, its judgement, and the result's assembly."""

from analysis.estimate.finish.assemble import assemble, assemble_start
from analysis.estimate.finish.finish import finish
from analysis.estimate.finish.fit import fit
from analysis.estimate.finish.fitted import Fitted, Piece

__all__ = ["Fitted", "Piece", "assemble", "assemble_start", "finish", "fit"]
