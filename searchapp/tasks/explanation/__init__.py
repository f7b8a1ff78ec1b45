"""Explanation regeneration: TextGraphs-13 (2019), and TextGraphs-15 (2021) with ratings."""
