"""Use cases: a typed request in, a typed result out, called by commands and screens alike.

experiments/    bench, tuning, ablation, learning curve, cross-validation
inspection/     topics, rankings and documents as a person reads them: pages, gold, explanations, two runs side by side
"""
