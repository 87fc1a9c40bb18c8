"""Constructions that turn a data set into the weights of a transformer."""
