"""The model: equations written once, used by everything.

model.py       Model, Parameter, Initial: what the rest of the program holds
document.py    the TOML file, with the place of every value
grammar.py     expressions: own tokens, own grammar
reading.py     tables to model, every rule checked
equations.py   names resolved into one graph
graph.py       the graph and its exact derivatives
linearity.py   which parameters enter linearly
statements.py  nodes as statements of source text, and the search for unknowns
code.py        the source text of all kernels (stepping.py: of the one with its integrator)
runtime.py     what the source text calls: memory on the stack, functions that vectorise
tiles.py       kernels over many samples: the loop that all models share
editing.py     one parameter of a text changed in place
printing.py    the model as text and as a model file; latex.py as mathematics
"""

from analysis.model.model import Initial, Model, Parameter

__all__ = ["Initial", "Model", "Parameter"]
