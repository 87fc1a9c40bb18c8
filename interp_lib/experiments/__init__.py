"""Training and measuring: the only place that imports torch."""
