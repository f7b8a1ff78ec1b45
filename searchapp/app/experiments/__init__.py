"""Experiments on recipes: bench, tuning, ablation, learning curve; cross-validation, which the last three share."""
