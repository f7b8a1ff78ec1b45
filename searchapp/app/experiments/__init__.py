"""Experiments on recipes: bench, tuning, ablation and learning curve."""
