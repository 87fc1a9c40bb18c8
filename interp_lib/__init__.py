"""Exact interpolation with transformers: build the weights, evaluate them, certify them."""

from .fields import EXACT as EXACT
from .fields import FLOAT as FLOAT
from .fields import balls as balls
from .layers import Transformer as Transformer
from .sequences import Dataset as Dataset
from .sequences import DatasetError as DatasetError
from .sequences import hausdorff_distance as hausdorff_distance
